"""What the demo model does with a request, decided without I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from web.harness.providers.demo import remembering, texts
from web.harness.providers.demo.arguments import PLACEHOLDER, raw_arguments
from web.harness.providers.demo.matching import in_words, named
from web.harness.providers.demo.notes import conversation_of, notes, rounds_before
from web.harness.providers.demo.planning import PLAN_TOOL, plan_arguments, planned_steps
from web.harness.values.messages import (
    SUMMARY_URI,
    ImageBlock,
    Message,
    ResourceBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelRequest, StopReason, ToolSpec

MAX_WORDS = 200_000
SLOW_RATE = 10.0

_LONG = re.compile(
    r"^\s*(?:long\b\D*(?P<a>\d[\d,]*)?"
    r"|(?:please\s+)?(?:write|stream|give|tell|generate)\b"
    r"(?:(?!\bfile\b).){0,20}?\b(?P<b>\d[\d,]*)[ -]*words?\b)",
    re.I | re.S,
)
_RATE = re.compile(r"\bat\s+(\d+(?:\.\d+)?)(?:\s+tokens?)?(?:\s*/\s*s|\s+(?:a|per)\s+second)", re.I)
_PARALLEL = re.compile(r"^\s*(?:parallel|at once|together)\s*(?::\s*|(?=/))", re.I)
_THEN = re.compile(r"[\s,;]+(?:and\s+)?then\s+", re.I)
_SEMICOLON = re.compile(r"\s*(?:;|\n(?=/))\s*")
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.I)
_THINK = re.compile(r"^\s*think\b[:,]?\s*(?:(?:hard|about|of|then)\b\s*)*", re.I)
_SLASH = re.compile(r"^\s*/([A-Za-z_][\w.-]*)\s*", re.S)
_OF_THESE = re.compile(
    r"^\s*(?:please\s+)?(?:(?:what|who|which|where|how|is|are|do|does|describe|explain|look|see|read"
    r"|tell|show|summari[sz]e|compare|check|translate)\b|can\s+you\b)"
    r".*\b(?:this|these|those|attach\w*|pictures?|images?|photos?|screenshots?)\b",
    re.I | re.S,
)
"""A question about what came along, which may hold words that ask for a tool elsewhere."""
_SKILL = re.compile(r"^\s*/(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Script:
    """One answer. `rate` is tokens a second, 0 for as fast as it goes, None for the usual pace.

    With `failure` "always" or "once" the answer breaks off after its text.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments (JSON text) of each."""
    stop_reason: StopReason = "end_turn"
    rate: float | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The last message of the person, and what its calls have brought so far."""

    prompt: str
    attachments: tuple[ResourceBlock, ...] = ()
    pictures: tuple[ImageBlock, ...] = ()
    rounds: list[list[tuple[ToolUseBlock, ToolResultBlock]]] = field(default_factory=list)

    @property
    def skills(self) -> set[str]:
        """The names of the skills that came along."""
        return {block.name for block in self.attachments if block.source == "skill"}

    @property
    def files(self) -> bool:
        """Whether more came along than skills."""
        return bool(self.pictures) or len(self.skills) < len(self.attachments)

    @property
    def came_with_more(self) -> bool:
        return bool(self.attachments or self.pictures)


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A `/name` that is no tool."""

    name: str


_Call = tuple[ToolSpec, str]


def script_for(request: ModelRequest) -> Script:
    """What to answer: the next call of a chain, what the calls brought, or a text."""
    turn = _turn(request.messages)
    if conversation := conversation_of(request):
        return Script(text=notes(request, conversation), rate=0.0)
    thinking = ""
    prompt = turn.prompt.strip()
    if match := _THINK.match(prompt):
        thinking = texts.thinking(prompt)
        prompt = prompt[match.end() :].strip()
    if (match := _SKILL.match(prompt)) and match["name"] in turn.skills:
        # The skill came along: what is left says what it is for.
        prompt = prompt[match.end() :].strip()
    if not turn.rounds and (prompt or not turn.came_with_more):
        direct = _direct(prompt, request.tools)
        if direct is not None:
            return _thought(direct, thinking)
    plan = planned_steps(prompt)
    if plan and named(request.tools, PLAN_TOOL) is not None:
        return _thought(_plan_script(plan, turn, request.tools), "" if turn.rounds else thinking)
    of_these = bool(turn.files and _OF_THESE.match(prompt))
    steps = [] if of_these else _steps(prompt, request.tools)
    done = len(turn.rounds)
    failed = bool(turn.rounds) and any(result.is_error for _, result in turn.rounds[-1])
    if done < len(steps) and not failed:
        script = _call_script(steps[done], turn, request.tools)
    elif done:
        script = Script(text=texts.results(turn.rounds, left=len(steps) - done))
    elif unclear := _unclear(prompt, request.tools):
        script = Script(text=texts.not_understood(unclear, request.tools))
    elif turn.came_with_more:
        script = Script(text=texts.attached(turn.attachments, turn.pictures))
    elif (wanted := remembering.wish(prompt)) is not None:
        script = Script(text=texts.noted(wanted))
    elif known := remembering.known_about(prompt, request):
        script = Script(text=texts.remembered(known))
    elif thinking:
        script = Script(text=texts.after_thinking(prompt))
    else:
        script = Script(text=texts.help_text(request.tools, asked=prompt))
    return _thought(script, thinking if not done else "")


def as_sub_agent(script: Script, request: ModelRequest) -> Script:
    """The same without the notice where another agent asks: its own answer has that."""
    if not request.system_prompt.startswith("You are a sub-agent"):
        return script
    return replace(script, text=script.text.removeprefix(texts.NOTICE))


def _direct(prompt: str, tools: tuple[ToolSpec, ...]) -> Script | None:
    """The answers that need no tool, None for all else."""
    words = prompt.lower().strip(" .!?")
    if words in ("", "help", "hello", "hi", "hey", "what can you do", "start"):
        return Script(text=texts.help_text(tools, asked=""))
    if words in ("show markdown", "markdown", "show me markdown"):
        return Script(text=texts.NOTICE + texts.SHOWCASE)
    if words in ("fail", "fail once"):
        once = words == "fail once"
        return Script(text=texts.failing(once), failure="once" if once else "always")
    if words == "refuse":
        return Script(text=texts.REFUSAL, stop_reason="refusal")
    if words == "empty":
        return Script()
    match = _LONG.match(_RATE.sub("", prompt))
    if match is not None:
        number = (match["a"] or match["b"] or "600").replace(",", "")
        count = min(int(number[:9]), MAX_WORDS)
        if not count:
            return Script(text=texts.NO_WORDS)
        return Script(text=texts.NOTICE + texts.long_text(count), rate=_rate(words))
    return None


def _rate(words: str) -> float | None:
    match = _RATE.search(words)
    if match is not None:
        return max(0.1, float(match.group(1)))
    if re.search(r"\bfast\b", words):
        return 0.0
    return SLOW_RATE if re.search(r"\bslow(?:ly)?\b", words) else None


def _steps(prompt: str, tools: tuple[ToolSpec, ...]) -> list[list[str]]:
    """The texts of the calls that a prompt asks for: one list for each answer with calls.

    "then" parts steps only where each of them is a call, so that it may stand in plain text.
    """
    parts = [_at_once(part) for part in _split(prompt, _THEN)]
    if all(_are_calls(part, tools) for part in parts):
        return parts
    whole = _at_once(prompt)
    return [whole] if _are_calls(whole, tools) else []


def _at_once(part: str) -> list[str]:
    match = _PARALLEL.match(part)
    if match is None:
        return [part]
    found: list[str] = []
    for text in _split(part[match.end() :], _SEMICOLON):
        # What follows a slash may hold lines of its own; plain words are one call a line.
        found += [text] if _SLASH.match(text) else text.splitlines()
    if len(found) == 1 and not _SLASH.match(found[0]):
        found = _split(found[0], _AND)
    return [text for text in found if text.strip()]


def _unclear(prompt: str, tools: tuple[ToolSpec, ...]) -> list[str]:
    """The parts after `parallel:` that ask for no tool."""
    return [
        text
        for part in _split(prompt, _THEN)
        if _PARALLEL.match(part)
        for text in _at_once(part)
        if not _is_call(text, tools)
    ]


def _are_calls(asked: list[str], tools: tuple[ToolSpec, ...]) -> bool:
    return bool(asked) and all(_is_call(text, tools) for text in asked)


def _is_call(text: str, tools: tuple[ToolSpec, ...]) -> bool:
    return _resolve(text, tools) is not None


def _resolve(text: str, tools: tuple[ToolSpec, ...]) -> _Call | _Unknown | None:
    """The tool a text asks for and its arguments; None if it asks for none."""
    match = _SLASH.match(text)
    if match is None:
        return in_words(tools, text)
    tool = named(tools, match.group(1))
    if tool is None:
        return _Unknown(match.group(1))
    return tool, raw_arguments(tool, text[match.end() :])


def _call_script(step: list[str], turn: _Turn, tools: tuple[ToolSpec, ...]) -> Script:
    last = turn.rounds[-1][-1][1].text if turn.rounds else ""
    found = [_resolve(text, tools) for text in step]
    unknown = [call.name for call in found if isinstance(call, _Unknown)]
    if unknown:
        return Script(text=texts.unknown_tool(unknown[0], tools))
    calls = tuple(
        (call[0].name, _with_result(call[1], last)) for call in found if isinstance(call, tuple)
    )
    names = [name for name, _ in calls]
    return Script(text=texts.calling(names, first=not turn.rounds), calls=calls)


def _plan_script(steps: list[str], turn: _Turn, tools: tuple[ToolSpec, ...]) -> Script:
    """One answer for each step: what of the plan is done, and the call that the step asks for."""
    done = len(turn.rounds)
    if done > len(steps):
        brought = [
            [(use, result) for use, result in each if use.name != PLAN_TOOL] for each in turn.rounds
        ]
        return Script(text=texts.plan_done(len(steps), brought))
    calls = [(PLAN_TOOL, plan_arguments(steps, done))]
    if done == len(steps):
        return Script(calls=tuple(calls))
    call = _resolve(steps[done], tools)
    if isinstance(call, tuple) and call[0].name != PLAN_TOOL:
        calls.append((call[0].name, call[1]))
    return Script(text=f"Step {done + 1}: {steps[done]}.", calls=tuple(calls))


def _with_result(arguments: str, result: str) -> str:
    """Puts the last result where `{result}` stands; inside of JSON text it has to be escaped."""
    return arguments.replace(PLACEHOLDER, json.dumps(result, ensure_ascii=False)[1:-1])


def _thought(script: Script, thinking: str) -> Script:
    if not thinking:
        return script
    return Script(
        script.text, thinking, script.calls, script.stop_reason, script.rate, script.failure
    )


def _turn(messages: Sequence[Message]) -> _Turn:
    before = range(len(messages) - 1, -1, -1)
    start = next((index for index in before if messages[index].role == "user"), None)
    if start is None:
        return _Turn("")
    attached = tuple(block for block in messages[start].attachments if block.uri != SUMMARY_URI)
    # Rounds of this turn that were summed up in its middle count, though they are not here.
    gone: list[list[tuple[ToolUseBlock, ToolResultBlock]]] = [[]] * rounds_before(messages[start])
    turn = _Turn(messages[start].text, attached, messages[start].pictures, gone)
    calls: dict[str, ToolUseBlock] = {}
    for message in messages[start + 1 :]:
        calls.update((call.id, call) for call in message.tool_uses)
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        if results:
            turn.rounds.append(
                [(calls[item.call_id], item) for item in results if item.call_id in calls]
            )
    return turn


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Parts between separators that stand outside of double quotes, braces and brackets."""
    parts: list[str] = []
    start = at = depth = 0
    quoted = False
    while at < len(text):
        character = text[at]
        if quoted:
            at += 2 if character == "\\" else 1
            quoted = character != '"'
            continue
        match = separator.match(text, at) if depth == 0 else None
        if match is not None:
            parts.append(text[start:at])
            start = at = match.end()
            continue
        # A quotation mark that is never closed is just a character.
        quoted = character == '"' and '"' in text[at + 1 :]
        depth = max(0, depth + (character in "{[") - (character in "}]"))
        at += 1
    return [*parts, text[start:]]
