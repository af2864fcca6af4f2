"""One run of a chat as markdown: what was said, each call with its answer and its result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from web.harness.builtin.versions import Version
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    Decision,
    ErrorReport,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    Note,
    RecoveryAnswered,
    RecoveryRequired,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
    Waiting,
)
from web.harness.values.messages import AttachedBlock, ImageBlock, JsonObject

MAX_RESULT_CHARS = 20_000
"""Of one result in the transcript; the events have all of it."""

Made = tuple[str, Version]
"""A path, and the version that a call made of it."""

_FENCE = re.compile(r"`{3,}")

_DECISIONS: Mapping[Decision, str] = {
    "allow": "The person allowed it once",
    "allow_chat": "The person allowed this tool for the chat",
    "deny": "The person denied it",
}


@dataclass(slots=True)
class _Text:
    message_id: str
    thinking: bool
    pieces: list[str]


@dataclass(slots=True)
class _Call:
    """What is known of a call; texts that say what a person was asked and answered are `notes`,
    and `inside` is what a sub-agent did in it."""

    call_id: str
    message_id: str
    name: str = ""
    written: str = ""
    arguments: JsonObject | None = None
    question: ApprovalRequired | None = None
    asked_at: float = 0.0
    start: ToolCallStart | None = None
    started_at: float = 0.0
    notes: list[str] = field(default_factory=list)
    inside: list[Event] = field(default_factory=list)
    result: ToolResult | None = None
    ended_at: float = 0.0


@dataclass(slots=True)
class _Remark:
    message_id: str
    text: str


_Entry = _Text | _Call | _Remark


def run_text(
    said: tuple[str, float] | None,
    attachments: Sequence[AttachedBlock],
    model: str,
    events: Sequence[Event],
    made: Mapping[str, Sequence[Made]],
) -> Iterator[str]:
    """A run, piece by piece. `said` is the person's message and when it was sent (seconds since
    1970); `made` the versions that each call made."""
    if said is not None:
        text, at = said
        yield f"\n## Person, {moment(at)}\n"
        for block in attachments:
            yield f"\n{_attached(block)}\n"
        if text.strip():
            yield f"\n{text.strip()}\n"
    if events:
        yield f"\n## Assistant ({model or 'no model'}), {moment(events[0].at)}\n"
    yield from _told(events, made)


def _told(events: Iterable[Event], made: Mapping[str, Sequence[Made]]) -> Iterator[str]:
    for entry in _entries(events):
        match entry:
            case _Text():
                words = "".join(entry.pieces).strip()
                yield f"\n{_quoted(words, 'Thinking') if entry.thinking else words}\n"
            case _Remark():
                yield f"\n{entry.text}\n"
            case _Call():
                yield from _call(entry, made)


def moment(at: float) -> str:
    """A time in seconds since 1970, in words."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def version_line(version: Version) -> str:
    """One version of a file, and who made it."""
    what = "deleted" if version.gone else f"{version.size:,} bytes, SHA-256 {version.sha256}"
    origin = version.origin
    by = {
        "call": f"by the call {origin.call_id}",
        "person": "by the person",
        "restore": f"restored by the person from version {version.restored}",
        "outside": "changed outside",
    }[origin.kind]
    if origin.decision:
        by += f", {'allowed once' if origin.decision == 'allow' else 'allowed for the chat'}"
    return f"version {version.number}, {moment(version.at)}: {what}, {by}"


def _entries(events: Iterable[Event]) -> list[_Entry]:
    """What the events add up to, in order. What was taken back is not in it."""
    entries: list[_Entry] = []
    calls: dict[str, _Call] = {}

    def call(call_id: str, name: str = "", message_id: str = "") -> _Call:
        if call_id not in calls:
            calls[call_id] = _Call(call_id, message_id)
            entries.append(calls[call_id])
        known = calls[call_id]
        known.name = known.name or name
        return known

    for event in events:
        body, at = event.body, event.at
        match body:
            case TextDelta() | ThinkingDelta():
                _add_text(entries, body)
            case ToolCallDelta():
                call(body.call_id, body.name, body.message_id).written += body.arguments
            case ApprovalRequired():
                known = call(body.call_id, body.name, body.message_id)
                known.question, known.asked_at, known.arguments = body, at, body.arguments
            case ToolCallStart():
                known = call(body.call_id, body.name, body.message_id)
                known.start, known.started_at, known.arguments = body, at, body.arguments
            case ToolResult():
                known = call(body.call_id, body.name)
                known.result, known.ended_at = body, at
            case NestedEvent():
                call(body.call_id).inside.append(event._replace(body=body.body))
            case InputRequired():
                call(body.call_id).notes.append(f"It asked the person for input at {moment(at)}.")
            case InputAnswered():
                call(body.call_id).notes.append(f"At {moment(at)}: {body.action}.")
            case AttemptReset():
                gone = body.message_id
                entries = [entry for entry in entries if entry.message_id != gone]
                calls = {key: each for key, each in calls.items() if each.message_id != gone}
                entries.append(
                    _Remark("", _note(f"Attempt {body.attempt} was dropped", body.reason))
                )
            case _:
                remark = _remark(body, at)
                if remark:
                    entries.append(_Remark("", remark))
    return entries


def _add_text(entries: list[_Entry], body: TextDelta | ThinkingDelta) -> None:
    thinking = isinstance(body, ThinkingDelta)
    last = entries[-1] if entries else None
    if isinstance(last, _Text) and last.thinking == thinking and last.message_id == body.message_id:
        last.pieces.append(body.text)
    else:
        entries.append(_Text(body.message_id, thinking, [body.text]))


_RESOLVED = {
    "result": "The person gave its result",
    "retry": "The person had it run again",
    "abort": "The person gave up",
    "withdrawn": "The run was stopped before the person said so",
}


def _remark(body: EventBody, at: float) -> str:
    match body:
        case Note():
            return _note(body.text, body.detail)
        case ErrorReport():
            return _note(f"Error ({body.code}): {body.message}", body.hint)
        case Waiting(on="summary"):
            return ""
        case Waiting():
            return _note(f"Waited {body.seconds:.0f} s", body.reason)
        case ContextCondensed():
            return _condensed(body)
        case RecoveryRequired():
            return _note(f"It was not known whether {body.name} ({body.call_id}) had run")
        case RecoveryAnswered():
            return _note(f"{_RESOLVED[body.how]} ({body.call_id})")
        case RunResult():
            tokens = (
                f"{body.usage.input_tokens:,} tokens read, {body.usage.output_tokens:,} written"
            )
            cost = f", ${body.cost:.4f}" if body.cost is not None else ""
            why = f" ({body.reason})" if body.reason else ""
            return f"*Ended {moment(at)}: {body.status}{why}. {tokens}{cost}.*"
    return ""


def _condensed(body: ContextCondensed) -> str:
    numbers = {
        "old results of tools taken out": body.cleared,
        "messages summarised": body.summarised,
        "messages left out": body.dropped,
        "messages cut": body.shortened,
    }
    done = ", ".join(f"{number} {words}" for words, number in numbers.items() if number)
    first = (
        f"The model is sent less of the conversation from here on, about {body.after:,} tokens "
        f"instead of {body.before:,}: {done}"
    )
    return _note(first, body.summary)


def _call(call: _Call, made: Mapping[str, Sequence[Made]]) -> Iterator[str]:
    asked = call.question.arguments if call.question is not None else call.arguments
    text = call.written if asked is None else _json(asked)
    yield f"\nCalls `{call.name}` ({call.call_id}):\n\n{_fenced(text, 'json')}\n"
    if call.question is not None:
        yield f"\nThe person was asked at {moment(call.asked_at)}. {_answer(call)}\n"
        if call.start is not None and call.start.edited:
            yield f"\nIt ran with:\n\n{_fenced(_json(call.start.arguments), 'json')}\n"
    for note in call.notes:
        yield f"\n{note}\n"
    if call.inside:
        done = "".join(_told(call.inside, made)).strip()
        yield f"\n{_quoted(done, f'A sub-agent, in {call.call_id}')}\n"
    if call.result is not None:
        result = call.result
        what = "Error" if result.is_error else "Result"
        took = f", {result.seconds:.1f} s" if result.seconds is not None else ""
        when = f"{moment(call.ended_at)}{took}"
        yield f"\n{what} of {call.call_id} ({when}):\n\n{_fenced(_cut(result.text), 'text')}\n"
        for part in result.parts:
            if part.sha256:
                about = f"{part.kind} {part.title} {part.media_type} {part.size:,} bytes"
                yield f"\n{_fenced(f'{about} sha256 {part.sha256}', 'text')}\n"
    for path, version in made.get(call.call_id, ()):
        yield f"\nMade {json.dumps(path, ensure_ascii=False)}, {version_line(version)}.\n"


def _answer(call: _Call) -> str:
    """What became of a question."""
    if call.start is not None and call.start.decision is not None:
        edited = ", with other arguments" if call.start.edited else ""
        return f"{_DECISIONS[call.start.decision]}{edited}, at {moment(call.started_at)}."
    if call.result is None:
        return "It waits for the answer."
    if call.result.decision is None:
        return "It was stopped before it was answered."
    return f"{_DECISIONS[call.result.decision]}, at {moment(call.ended_at)}."


def _note(text: str, detail: str = "") -> str:
    return _quoted(": ".join(each for each in (text, detail) if each), "Note")


def _attached(block: AttachedBlock) -> str:
    if isinstance(block, ImageBlock):
        # Its words and its hash, by which the bytes can be found.
        return _fenced(f"{block.line} sha256 {block.sha256}", "text")
    about = " ".join(f"{block.name} {block.uri}".split())
    return f"Attached:\n\n{_fenced(about, 'text')}\n\n{_fenced(_cut(block.text), 'text')}"


def _json(arguments: JsonObject) -> str:
    return json.dumps(arguments, ensure_ascii=False, indent=2)


def _fenced(text: str, language: str) -> str:
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _quoted(text: str, label: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in [f"{label}:", "", *text.split("\n")])


def _cut(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n… ({len(text) - MAX_RESULT_CHARS:,} more characters)"
