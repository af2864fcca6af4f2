"""What was written of a run, folded into what is needed to go on with it."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.loop.state import RunState
from web.harness.sessions.journal import CallRecord, Recorded, Step
from web.harness.values.messages import Message


class Folding:
    """What the steps so far added to the conversation since they last replaced it, and the records
    of the newest answer's calls."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.replaced: tuple[Message, ...] | None = None
        self.calls: dict[str, CallRecord] = {}

    def take(self, step: Step) -> None:
        if step.replaced is not None:
            self.messages, self.replaced = [], step.replaced
        self.messages += step.messages
        if step.kind == "answered":
            self.calls = {}
        self.calls.update((record.use.id, record) for record in step.calls)


def fold(state: RunState, steps: Iterable[Step]) -> Recorded:
    """The run as its steps left it, in their order; `state` is the one after the last of them.

    The steps may begin with the last one that replaced the conversation, if no call of an answer
    before it is open. Steps of one number that were written twice, by a process that died between,
    have to be left out.
    """
    folding = Folding()
    for step in steps:
        folding.take(step)
    return Recorded(state, tuple(folding.messages), folding.replaced, folding.calls)
