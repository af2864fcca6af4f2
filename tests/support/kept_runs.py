"""Runs that are written down, in memory: for pages and programs without a backend."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from web.chats.chat import Chat
from web.chats.transcript.asked import find_uncertain
from web.chats.transcript.run_words import INTERRUPTED, RESUMED
from web.harness.loop.actions import CallSettled, CallsStarted, ModelAnswered, ProposedCall
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.journal import CallRecord, NumberedStep, Step
from web.harness.values.errors import DecisionRefused, HarnessError
from web.harness.values.events import (
    EventBody,
    Note,
    RecoveryAnswered,
    Resolution,
    RunResult,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.messages import Message, ToolResultBlock
from web.harness.values.model import StopReason
from web.harness.values.usage import Usage


class KeptRuns:
    """A `RunControl`. What is done with a run is told by events of it, as a backend would have it
    told; the run itself goes on only as far as a test writes it on."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._steps: defaultdict[str, list[NumberedStep]] = defaultdict(list)
        self._answered: set[str] = set()
        self._times = itertools.count(1_790_000_000.0, 0.25)
        self.reads: list[tuple[int, int]] = []
        """The number after which steps were asked for, and how many."""

    def write(self, run_id: str, *steps: Step, at: float | None = None) -> None:
        for step in steps:
            number = len(self._steps[run_id]) + 1
            time = next(self._times) if at is None else at
            self._steps[run_id].append(NumberedStep(number, time, 0, step))

    def write_down(self, run_id: str, messages: Sequence[Message]) -> None:
        """The steps of a run that added these messages."""
        for step in steps_of([each for each in messages if each.id.startswith(f"{run_id}-")]):
            self.write(run_id, step)

    def forget(self, run_id: str) -> None:
        del self._steps[run_id]

    async def resume(self, chat: Chat, run_id: str) -> None:
        self._tell(run_id, Note(RESUMED))

    async def leave(self, chat: Chat, run_id: str) -> None:
        self._tell(run_id, INTERRUPTED, RunResult("failed", "", reason=INTERRUPTED.code))

    async def pause(self, chat: Chat, run_id: str) -> None:
        if chat.turn is None or chat.turn.run_id != run_id:
            raise HarnessError("This run has ended.", code="run_ended")
        chat.transcript.halt(run_id, "paused")

    async def resolve(
        self, chat: Chat, run_id: str, key: str, how: Resolution, text: str = ""
    ) -> None:
        call = find_uncertain(chat.channel, key)
        if call is None or key in self._answered:
            raise DecisionRefused("This was answered already.", hint="Nothing was changed.")
        self._answered.add(key)
        following: list[EventBody]
        if how == "result":
            following = [ToolResult(call.call_id, call.name, text)]
        elif how == "retry":
            arguments = call.arguments or {}
            following = [ToolCallStart(call.call_id, call.name, arguments, f"{run_id}-1")]
        else:
            unknown = "Nobody knows if it ran."
            following = [
                ToolResult(call.call_id, call.name, unknown, is_error=True),
                RunResult("cancelled", "", reason="given_up"),
            ]
        self._tell(run_id, RecoveryAnswered(key, call.call_id, how), *following)

    async def steps(
        self, chat: Chat, run_id: str, after: int = 0, limit: int = 1_000
    ) -> Sequence[NumberedStep]:
        self.reads.append((after, limit))
        return self._steps[run_id][after : after + limit]

    def _tell(self, run_id: str, *bodies: EventBody) -> None:
        self._events.append(run_id, list(bodies))


def steps_of(messages: Sequence[Message]) -> list[Step]:
    """What a journal writes of a run with these messages, the person's first."""
    steps: list[Step] = []
    records: dict[str, CallRecord] = {}
    for message in messages:
        if message.role == "user":
            steps.append(Step("begun", messages=(message,)))
        elif message.role == "assistant":
            records = {use.id: CallRecord(use, message.id) for use in message.tool_uses}
            sizes = {"messages": len(steps) + 1, "tokens": 1_234, "tools": 2}
            steps.append(Step("model_call", about={"model": "demo:demo", "attempt": 1, **sizes}))
            calls = tuple(ProposedCall(use.id, use.name) for use in message.tool_uses)
            why: StopReason = "tool_use" if calls else "end_turn"
            told = ModelAnswered(message.size, calls, why, Usage(1_234, 56), 0.0123)
            answer = (message,)
            about = {"model": "demo:demo", "seconds": 1.5}
            steps.append(Step("answered", told, answer, None, tuple(records.values()), about))
            if calls:
                steps.append(Step("calls_started", CallsStarted(tuple(records))))
        else:
            blocks = [each for each in message.content if isinstance(each, ToolResultBlock)]
            for block in blocks:
                use = records[block.call_id].use
                record = CallRecord(use, message.id, result=block, seconds=0.2)
                added = (message,) if block is blocks[-1] else ()
                settled = CallSettled(use.id, block.size)
                steps.append(Step("call_settled", settled, added, None, (record,)))
    return steps
