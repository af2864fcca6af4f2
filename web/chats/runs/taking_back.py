"""A message that waits is taken back, unless another server has begun with it by then."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod

from web.chats.chat import Chat, Turn
from web.chats.journal.accepting import KEEP_SECONDS, Accepting
from web.chats.journal.journal import TurnTakenBack
from web.chats.runs.durability import AGAIN_SECONDS, LEASE_WAIT_SECONDS, Durability
from web.chats.tasks import TaskOwner
from web.harness.values.errors import NotFound, SessionConflict, StoreError
from web.harness.values.events import RunResult

log = logging.getLogger(__name__)


class TakingBack(Accepting):
    """The part of `Turns` that has messages wait no longer."""

    _durable: Durability | None
    _tasks: TaskOwner
    _stopping: set[str]

    def __init__(self) -> None:
        super().__init__()
        self._taking_back: set[asyncio.Task[None]] = set()
        self.to_stop: set[str] = set()
        """Runs that a person stopped here and that have no end yet, written down or not."""

    @abstractmethod
    def stop(self, chat: Chat, run_id: str) -> None: ...

    @abstractmethod
    def resume_loaded(self, chat: Chat) -> None: ...

    @abstractmethod
    async def _stop_durably(self, chat: Chat, run_id: str, durable: Durability) -> None: ...

    async def take_back(self, chat: Chat, run_id: str) -> Turn:
        """Takes a waiting message back and returns it. Raises NotFound where it does not wait,
        SessionConflict where another server began with it first; then it is stopped.

        Where the store does not say in time who was first, it counts as taken back.
        """
        waited = self._dequeue(chat, run_id)
        if waited is None:
            raise NotFound(
                "This message does not wait any more.", hint="It was sent or taken back."
            )
        turn, decided = waited
        done, _ = await asyncio.wait({decided}, timeout=KEEP_SECONDS)
        if done and not decided.result():
            raise SessionConflict(
                "Another server began to answer this message before it could be taken back.",
                hint="Its answer is stopped. The message stays in the chat; it can be tried again.",
            )
        return turn

    def _dequeue(self, chat: Chat, run_id: str) -> tuple[Turn, asyncio.Future[bool]] | None:
        """Has a message wait no longer, if it does; returns it, and what tells whether it was taken
        back before another server began with it."""
        turn = chat.dequeue(run_id)
        if turn is None:
            return None
        self._changed(chat)
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        task = self._tasks.create_task(self._take_back(chat, turn, decided))
        self._taking_back.add(task)
        task.add_done_callback(self._taking_back.discard)
        return turn, decided

    async def _take_back(self, chat: Chat, turn: Turn, decided: asyncio.Future[bool]) -> None:
        is_first = await self._is_taken_back(chat, turn)
        decided.set_result(is_first)
        if is_first:
            self._events.append(turn.run_id, [RunResult("cancelled", "", reason="taken_back")])
            self._changed(chat)
        elif self._durable is None:
            self.stop(chat, turn.run_id)  # It is a run by now.
        else:
            # A run stops like any; if nobody performs it after all, it waits here again.
            self._wait_again(chat, turn)
            await self._stop_durably(chat, turn.run_id, self._durable)

    async def _is_taken_back(self, chat: Chat, turn: Turn) -> bool:
        taken_back, failures = TurnTakenBack(turn.run_id), 0
        if self._durable is None and self._journal.durable:
            return await self._is_first(chat, taken_back, None)
        while self._durable is not None:
            try:
                if await self._durable.take_back(chat, turn):
                    break
                return False
            except StoreError as error:
                log.warning("A message is taken back once the store works: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS[min(failures, len(AGAIN_SECONDS) - 1)])
                failures += 1
        self._journal.write(chat, taken_back)
        return True

    def _wait_again(self, chat: Chat, turn: Turn) -> None:
        """Somebody else has the session, so the message waits."""
        self._own.discard(turn.run_id)
        if turn.run_id in self._stopping:
            self.to_stop.add(turn.run_id)  # Whenever it begins.
        if turn.run_id not in chat.runs:
            chat.enqueue(turn, at=0)
            self._tasks.create_task(self._resume_later(chat))
        self._changed(chat)

    async def _resume_later(self, chat: Chat) -> None:
        await asyncio.sleep(LEASE_WAIT_SECONDS)
        if not chat.is_deleted:
            self.resume_loaded(chat)
