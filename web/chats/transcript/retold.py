"""A conversation told again as runs with events: the page shows it as if it were its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from web.harness.builtin.plan import MAX_STEP_CHARS, MAX_STEPS
from web.harness.memory.summaries import is_summary
from web.harness.tools.outputs import MAX_PART_CHARS
from web.harness.tools.words import shorten
from web.harness.values.events import (
    EventBody,
    Note,
    PlanStatus,
    PlanStep,
    ResultPart,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import (
    AttachedBlock,
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

SUMMARISED = "Earlier messages had been summarised when this chat was saved."


@dataclass(frozen=True, slots=True)
class RetoldRun:
    """One turn: what the person said, what came of it, and its messages under ids of its own."""

    run_id: str
    text: str
    attachments: tuple[AttachedBlock, ...]
    bodies: tuple[EventBody, ...]
    messages: tuple[Message, ...]


def retold(messages: Sequence[Message], new_id: Callable[[], str]) -> Iterator[RetoldRun]:
    """A conversation, turn by turn. Messages and calls get new ids, as the runs of a chat give
    them: those of a file that somebody brought could be any text."""
    before: str | None = None
    for turn in _turns(messages):
        run_id = new_id()
        named = _renamed(turn, run_id, before)
        before = named[-1].id
        yield _told(run_id, named)


def renamed_ids(messages: Sequence[Message], runs: Sequence[RetoldRun]) -> dict[str, str]:
    """The new id of each message by the one it had."""
    new = (message.id for run in runs for message in run.messages)
    return dict(zip((message.id for message in messages), new, strict=True))


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Each begins with what a person said, and a summary goes with the turn after it."""
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and any(not is_summary(each) for each in turn):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _renamed(turn: list[Message], run_id: str, before: str | None) -> tuple[Message, ...]:
    named: list[Message] = []
    calls: dict[str, str] = {}
    for number, message in enumerate(turn):
        message_id = f"{run_id}-{number}"
        for index, use in enumerate(message.tool_uses):
            calls[use.id] = f"{message_id}-{index}"
        content = tuple(_with_call(block, calls) for block in message.content)
        named.append(Message(message_id, message.role, content, before))
        before = message_id
    return tuple(named)


def _with_call(block: ContentBlock, calls: dict[str, str]) -> ContentBlock:
    if isinstance(block, ToolUseBlock):
        return replace(block, id=calls[block.id])
    if isinstance(block, ToolResultBlock):
        return replace(block, call_id=calls[block.call_id])
    return block


def _told(run_id: str, messages: tuple[Message, ...]) -> RetoldRun:
    text: list[str] = []
    attachments: list[AttachedBlock] = []
    bodies: list[EventBody] = []
    uses = {use.id: use for message in messages for use in message.tool_uses}
    for message in messages:
        if is_summary(message):
            said = "\n".join(each.text for each in message.attachments)
            bodies.append(Note(SUMMARISED, said[:MAX_PART_CHARS]))
        elif message.role == "user":
            text.append(message.text)
            blocks = (b for b in message.content if isinstance(b, ResourceBlock | ImageBlock))
            attachments += blocks
        else:
            bodies += _bodies(message, uses)
    answer = messages[-1].text if messages[-1].role == "assistant" else ""
    bodies.append(RunResult("completed", answer))
    return RetoldRun(run_id, "\n\n".join(text), tuple(attachments), tuple(bodies), messages)


def _bodies(message: Message, uses: dict[str, ToolUseBlock]) -> Iterator[EventBody]:
    for block in message.content:
        match block:
            case ThinkingBlock() if block.text:
                yield ThinkingDelta(block.text, message.id)
            case TextBlock() if block.text:
                yield TextDelta(block.text, message.id)
            case ToolUseBlock():
                yield ToolCallStart(block.id, block.name, block.arguments, message.id)
            case ToolResultBlock():
                yield _result(block, uses[block.call_id])
            case _:
                pass


def _result(block: ToolResultBlock, use: ToolUseBlock) -> ToolResult:
    parts = tuple(map(_part, block.content)) if block.pictures else ()
    plan = () if block.is_error or use.name != "update_plan" else _plan(use)
    return ToolResult(block.call_id, use.name, block.text, block.is_error, parts=parts, plan=plan)


def _plan(use: ToolUseBlock) -> tuple[PlanStep, ...]:
    """The plan that a call wrote; none where it is not as `update_plan` takes it."""
    steps = use.arguments.get("steps")
    if not isinstance(steps, list) or len(steps) > MAX_STEPS:
        return ()
    plan = []
    for step in steps:
        if not isinstance(step, dict):
            return ()
        text, status = step.get("text"), step.get("status", "pending")
        known = next((each for each in get_args(PlanStatus) if each == status), None)
        if not isinstance(text, str) or known is None:
            return ()
        plan.append(PlanStep(shorten(" ".join(text.split()), MAX_STEP_CHARS), known))
    return tuple(plan)


def _part(block: TextBlock | ImageBlock) -> ResultPart:
    if isinstance(block, TextBlock):
        return ResultPart("text", block.text[:MAX_PART_CHARS], size=len(block.text))
    if block.left_out:
        return ResultPart("note", block.line)
    return ResultPart(
        "image",
        title=" ".join(block.name.split())[:100],
        media_type=block.media_type,
        size=len(block.data),
        sha256=block.sha256,
    )


def pictures_of(run: RetoldRun) -> list[ImageBlock]:
    """All pictures of a turn whose bytes are there."""
    blocks = [block for message in run.messages for block in message.content]
    inner = [each for b in blocks if isinstance(b, ToolResultBlock) for each in b.pictures]
    own = [block for block in blocks if isinstance(block, ImageBlock)]
    return [each for each in (*own, *inner) if each.data]
