"""Ends runs that do not go on: what they did is kept, and goes into the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from web.chats.chat import Chat
from web.chats.journal.journal import TurnBegun
from web.chats.runs.durability import LEASE_WAIT_SECONDS, Durability
from web.chats.runs.interrupted_runs import InterruptedRuns
from web.chats.runs.open_calls import with_results
from web.chats.runs.run_messages import has_run, is_of
from web.chats.transcript.spending import SPENT
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.loop.state import CallState
from web.harness.runtime.taking_up import UNREADABLE
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.journal import Recorded
from web.harness.values.errors import HarnessError, StoreError
from web.harness.values.events import EventBody, RunResult
from web.harness.values.messages import Message


class Abandoning:
    """Ends runs under the lease of their session, each once."""

    def __init__(self, durable: Durability, runtime: HarnessRuntime, events: EventLog) -> None:
        self._durable = durable
        self._runtime = runtime
        self._events = events
        self._interrupted_runs = InterruptedRuns(events, runtime.sessions)

    async def abandon(self, chat: Chat, begun: TurnBegun, told: Sequence[EventBody]) -> None:
        """Ends a run that nobody performs with these events, the last of which is its result.

        Raises SessionConflict while somebody performs it, and StoreError.
        """
        await self._runtime.run(
            chat.identity,
            chat.id,
            partial(self._end, chat, begun, told),
            wait=LEASE_WAIT_SECONDS,
        )
        # Its events take less room from now on.
        await self._events.close(begun.turn.run_id)

    async def _end(
        self,
        chat: Chat,
        begun: TurnBegun,
        told: Sequence[EventBody],
        services: ExecutionServices,
    ) -> None:
        services.commits = False
        run_id, executions = begun.turn.run_id, await self._durable.executions()
        try:
            execution, _ = await executions.begin(run_id)
        except HarnessError as error:
            if error.code not in ("not_found", "run_ended"):
                raise
            return
        result = told[-1]
        status = result.status if isinstance(result, RunResult) else "failed"
        history = await self._kept(chat, services.history, begun)
        self._events.append(run_id, told)
        await self._events.flush(run_id)
        services.history, services.replayable = history, False
        services.state[SPENT] = chat.spending.as_json()
        chat.history = history
        services.commits = True
        services.commit = lambda lease, snapshot: executions.end_with(
            lease, snapshot, run_id, execution.fence, status
        )

    async def _kept(
        self, chat: Chat, history: Sequence[Message], begun: TurnBegun
    ) -> list[Message]:
        """A conversation with what is kept of a run: what was written down of it, exactly, and the
        text that the model was writing then, as the events have it."""
        run_id = begun.turn.run_id
        told = await self._interrupted_runs.with_run(chat, history, begun)
        if has_run(history, run_id) or not has_run(told, run_id):
            return told
        recorded = await self._recorded(run_id)
        if recorded is None:
            return told
        first = next(at for at, each in enumerate(told) if is_of(each, run_id))
        before = told[:first] if recorded.replaced is None else recorded.replaced
        messages = with_results(
            [*before, *recorded.messages],
            recorded.calls,
            lambda call_id: _words(recorded.state.call(call_id)),
        )
        half = [each for each in told if each.id == recorded.state.next_message_id]
        half = [each for each in half if each.role == "assistant"]
        return messages + [replace(each, parent_id=messages[-1].id) for each in half]

    async def _recorded(self, run_id: str) -> Recorded | None:
        """None where nothing was written down, or what was cannot be read. Raises StoreError."""
        try:
            return await (await self._durable.executions()).recorded(run_id)
        except StoreError as error:
            if error.code not in UNREADABLE:
                raise
            return None


def _words(call: CallState | None) -> str:
    """The result of a call that had none when its run was ended."""
    if call is not None and call.status in ("running", "uncertain"):
        return "Nobody knows whether this ran: the program was interrupted while it was under way."
    return "This was not finished: the answer was ended before."
