"""Steps of a journal made into what a page shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from web.chats.steps.step_kinds import ShownStep, StepCall
from web.harness.loop.actions import (
    CallSettled,
    CallsStarted,
    CancelRequested,
    Condensed,
    CondenseFailed,
    ContextFull,
    Decided,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Resolved,
    Resumed,
)
from web.harness.sessions.journal import CallRecord, NumberedStep, Step
from web.harness.values.messages import (
    ImageBlock,
    Message,
    ResourceBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from web.harness.values.usage import Usage

_MODEL, _SECONDS = "model", "seconds"
"""Of `Step.about`: shown apart from the rest."""


def shown_steps(steps: Iterable[NumberedStep], names: dict[str, str]) -> Iterator[ShownStep]:
    """The steps in their order. `names` are those of calls by their ids: what the steps say of
    them is added."""
    for numbered in steps:
        yield shown_step(numbered, names)


def shown_step(numbered: NumberedStep, names: dict[str, str]) -> ShownStep:
    step = numbered.step
    names.update((record.use.id, record.use.name) for record in step.calls)
    told = _told(step.outcome)
    seconds = step.about.get(_SECONDS)
    # Of the person's own message and of what was made shorter, the text is the conversation's.
    said = [message for message in step.messages if message.role != "tool"]
    return ShownStep(
        numbered.number,
        numbered.at,
        step.kind,
        numbered.cursor,
        model=str(step.about.get(_MODEL, "")),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        usage=told.get("usage"),
        cost=told.get("cost"),
        roles=tuple(message.role for message in step.messages),
        text="\n\n".join(message.text for message in said if message.text),
        thinking="\n\n".join(_thoughts(said)),
        attachments=tuple(_attached(said)),
        calls=_calls(step, names),
        how=told.get("how", ""),
        words=told.get("words", ""),
        wait=told.get("wait"),
        about={name: each for name, each in step.about.items() if name not in (_MODEL, _SECONDS)},
        forks=can_fork(step),
    )


def can_fork(step: Step) -> bool:
    """Whether the conversation is whole after a step: an answer, or all results of its calls."""
    return any(message.role in ("assistant", "tool") for message in step.messages)


def _told(outcome: Outcome | None) -> dict[str, Any]:
    match outcome:
        case ModelAnswered():
            usage = outcome.usage if outcome.usage != Usage() else None
            return {"how": outcome.stop_reason, "usage": usage, "cost": outcome.cost}
        case ModelFailed():
            words = " ".join(each for each in (outcome.message, outcome.hint) if each)
            return {"how": outcome.code, "words": words, "wait": outcome.retry_after}
        case ContextFull():
            return {"words": f"{outcome.tokens:,} tokens, {outcome.room:,} fit"}
        case Condensed():
            usage = outcome.usage if outcome.usage != Usage() else None
            words = f"{outcome.tokens:,} tokens are left"
            return {"words": words, "usage": usage, "cost": outcome.cost}
        case CondenseFailed():
            return {"how": outcome.code, "wait": outcome.retry_after, "cost": outcome.cost}
        case Decided():
            return {"how": outcome.decision}
        case Resolved():
            return {"how": outcome.how}
        case CallSettled():
            usage = outcome.usage if outcome.usage != Usage() else None
            return {"usage": usage, "cost": outcome.cost}
        case CallsStarted() | CancelRequested() | InputGiven() | Resumed() | None:
            return {}


def _calls(step: Step, names: dict[str, str]) -> tuple[StepCall, ...]:
    """Those that the step has a record of, then those that it only names."""
    recorded = [_of_record(record) for record in step.calls]
    known = {call.call_id for call in recorded}
    for call_id in _named(step.outcome):
        if call_id not in known:
            recorded.append(StepCall(call_id, names.get(call_id, call_id)))
    results = {block.call_id: block for block in _results(step.messages)}
    return tuple(
        _with_result(call, results.get(call.call_id)) if call.result is None else call
        for call in recorded
    )


def _named(outcome: Outcome | None) -> Sequence[str]:
    match outcome:
        case CallsStarted(call_ids):
            return call_ids
        case CallSettled() | Resolved() | InputGiven():
            return (outcome.call_id,)
        case Resumed():
            return (*outcome.repeat, *outcome.uncertain, *outcome.waiting)
        case _:
            return ()


def _of_record(record: CallRecord) -> StepCall:
    use = record.use
    call = StepCall(
        use.id,
        use.name,
        use.arguments,
        use.malformed or "",
        record.replay,
        record.refusal,
        record.decision or ("allow_chat" if record.granted else ""),
        record.edited,
        # What the person typed is for the tool alone, and so is what the server remembers by.
        (record.input or {}).get("request"),
        seconds=record.seconds,
    )
    return _with_result(call, record.result)


def _with_result(call: StepCall, block: ToolResultBlock | None) -> StepCall:
    if block is None:
        return call
    return replace(call, result=block.text, is_error=block.is_error, pictures=len(block.pictures))


def _results(messages: Sequence[Message]) -> Iterator[ToolResultBlock]:
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                yield block


def _thoughts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.content:
            if isinstance(block, ThinkingBlock) and block.text:
                yield block.text


def _attached(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.content:
            if isinstance(block, ResourceBlock):
                yield block.name or block.uri
            elif isinstance(block, ImageBlock):
                yield block.line
