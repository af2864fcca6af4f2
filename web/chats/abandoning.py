"""Ends runs that do not go on: what they did is kept, and goes into the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from web.chats.chat import Chat
from web.chats.durability import Durability
from web.chats.journal import TurnBegun
from web.chats.left_over import LeftOver
from web.chats.spending import SPENT
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.event_log import EventLog
from web.harness.values.errors import HarnessError
from web.harness.values.events import EventBody, RunResult

LEASE_WAIT_SECONDS = 2.0


class Abandoning:
    """Ends runs under the lease of their session, each once."""

    def __init__(self, durable: Durability, runtime: HarnessRuntime, events: EventLog) -> None:
        self._durable = durable
        self._runtime = runtime
        self._events = events
        self._left_over = LeftOver(events, runtime.sessions)

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
        history = await self._left_over.with_run(chat, services.history, begun)
        self._events.append(run_id, told)
        await self._events.flush(run_id)
        services.history, services.replayable = history, False
        services.state[SPENT] = chat.spending.as_json()
        chat.history = history
        services.commits = True
        services.commit = lambda lease, snapshot: executions.end_with(
            lease, snapshot, run_id, execution.fence, status
        )
