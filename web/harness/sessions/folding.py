"""What was written of a run, folded into what is needed to go on with it."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.loop.state import RunState
from web.harness.sessions.journal import CallRecord, Recorded, Step
from web.harness.values.messages import Message


def fold(state: RunState, steps: Iterable[Step]) -> Recorded:
    """The run as its steps left it, in their order; `state` is the one after the last of them.

    The steps may begin with the last one that replaced the conversation, if no call of an answer
    before it is open. Steps of one number that were written twice, by a process that died between,
    have to be left out.
    """
    messages: list[Message] = []
    replaced: tuple[Message, ...] | None = None
    calls: dict[str, CallRecord] = {}
    for step in steps:
        if step.replaced is not None:
            replaced, messages = step.replaced, []
        messages += step.messages
        if step.kind == "answered":
            calls = {}
        calls.update((record.use.id, record) for record in step.calls)
    return Recorded(state, tuple(messages), replaced, calls)
