"""A message is taken once it is stored: who is told so may rely on it, and nobody else is."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from web.chats.chat import Chat, Turn
from web.chats.journal.entries import Entries
from web.chats.journal.journal import TurnBegun, TurnSent, TurnTakenBack, journal_of
from web.harness.sessions.event_log import EventLog
from web.harness.values.errors import HarnessError, SessionConflict, StoreError

KEEP_SECONDS = 4.0
"""Whoever sends a message waits no longer for a store that does not answer."""

AGAIN_SECONDS = 0.2
"""Between two tries of what may succeed in a moment."""

HEARD_SECONDS = 2.0
"""For what other servers wrote to the journal before. Nobody knows of it while the store fails."""

_PASSING = ("store_locked", "store_busy")


def same_request(stands: Turn, turn: Turn) -> Turn:
    """The turn that stands. Raises HarnessError (`request_id_reused`) where it says other words."""
    if stands.text != turn.text:
        raise HarnessError(
            "This request id was used for another message.",
            hint="Use a new request id for each message.",
            code="request_id_reused",
        )
    return stands


def busy(chat: Chat) -> SessionConflict:
    """For a message that was not asked to wait."""
    if chat.transcript.halted:
        return SessionConflict(
            "The answer before this message stands still: it was stopped on its way.",
            hint='Choose "Go on" or "Leave it" in the chat (resume or leave its run), or ask for '
            'the message to wait ("queue": true).',
        )
    return SessionConflict(
        "This chat is answering another message.",
        hint='Try again when its answer has ended, or ask for it to wait ("queue": true).',
    )


@dataclass(slots=True, eq=False)
class _Held:
    """A turn that is not stored yet; `failed` is what could be tried again before it."""

    stored: asyncio.Future[StoreError | None]
    failed: Turn | None


class Accepting(Entries):
    """The part of `Turns` that knows which turns wait to be stored. In memory there are none."""

    _events: EventLog
    _running: dict[str, asyncio.Task[None]]
    _own: set[str]

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, _Held] = {}

    @abstractmethod
    async def _run(self, chat: Chat, turn: Turn, instead_of: str | None) -> None: ...

    @abstractmethod
    async def _go_on(self, chat: Chat, turn: Turn) -> None: ...

    _changed: Callable[[Chat], None]

    def _hold(self, turn: Turn, failed: Turn | None) -> None:
        """Has a turn wait until `keep` says that it is stored."""
        if self._journal.durable:
            loop = asyncio.get_running_loop()
            self._held[turn.run_id] = _Held(loop.create_future(), failed)
            self._unheard[turn.run_id] = loop.create_future()

    async def keep(self, chat: Chat, turn: Turn) -> Turn:
        """Returns what stands when a turn that was sent is stored: another where a server took the
        same request first.

        Raises StoreError where that fails or takes too long: then it was not sent, and never is.
        Raises HarnessError (`request_id_reused`) where the other has another text.
        """
        held = self._held.get(turn.run_id)
        if held is None:
            return turn
        refused: StoreError | None = None
        try:
            refused = await self._stored(chat)
        finally:
            # Where whoever sent it is gone, it is sent: the log writes it as soon as it can.
            if refused is not None:
                self._withdraw(chat, turn)
            del self._held[turn.run_id]
            held.stored.set_result(refused)
        if refused is not None:
            raise refused
        return same_request(await self._first(turn), turn)

    async def kept(self, turn: Turn) -> Turn:
        """The same for a turn that somebody else has sent, under the same request id."""
        held = self._held.get(turn.run_id)
        refused = await asyncio.shield(held.stored) if held is not None else None
        if refused is not None:
            raise refused
        return same_request(await self._first(turn), turn)

    async def _first(self, turn: Turn) -> Turn:
        """Of the turns of one request the first in the journal, as every server sees it."""
        heard = self._unheard.get(turn.run_id)
        if heard is not None:
            # Where what others wrote cannot be read in time, nobody is known to have been first.
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARD_SECONDS):
                    await asyncio.shield(heard)
        return self._instead.get(turn.run_id, turn)

    async def _is_first(
        self, chat: Chat, entry: TurnBegun | TurnTakenBack, seconds: float | None
    ) -> bool:
        """Writes that a turn begins, or was taken back, and says whether it is the first of both in
        the journal, as every server sees it. Where that is not known in time, it is."""
        run_id = entry.turn.run_id if isinstance(entry, TurnBegun) else entry.run_id
        key = type(entry), run_id
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._decided[key] = decided
        try:
            self._journal.write(chat, entry)
            await self._journal.flush(chat)
            async with asyncio.timeout(seconds):
                return await decided
        except TimeoutError:
            return True
        finally:
            del self._decided[key]

    def leave(self, chat: Chat) -> None:
        """Forgets a chat that leaves the memory, and may be loaded again."""
        for run_id in {*chat.runs, *(turn.run_id for turn in chat.requests.values())}:
            self._chats.pop(run_id, None)
            self._own.discard(run_id)
            self._instead.pop(run_id, None)

    async def _stored(self, chat: Chat) -> StoreError | None:
        """None once the journal is written, else why it is not."""
        error: StoreError | None = None
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                while True:
                    try:
                        await self._events.flush(journal_of(chat.id))
                    except StoreError as failed:
                        error = failed
                        if failed.code not in _PASSING and not failed.transient:
                            break
                        await asyncio.sleep(AGAIN_SECONDS)
                    else:
                        return None
        except TimeoutError:
            pass
        why = error.message if error is not None else "The store of chats does not answer."
        hint = error.hint if error is not None else "Try again in a moment."
        return StoreError(
            f"The message was not sent. {why}",
            hint=f"What you typed is kept. {hint}",
            code=error.code if error is not None else "store_busy",
        )

    def _withdraw(self, chat: Chat, turn: Turn) -> None:
        """As if it had never been sent."""
        self._withdrawn.add(turn.run_id)
        self._hear(turn.run_id)
        chat.dequeue(turn.run_id)
        if chat.requests.get(turn.request_id) is turn:
            del chat.requests[turn.request_id]
        self._journal.withdraw(chat, TurnSent(turn, self._replaces.pop(turn.run_id, "")))

    async def _when_kept(self, chat: Chat, turn: Turn, instead_of: str | None) -> None:
        """Runs a turn once it is stored; one that could not be is none."""
        held = self._held.get(turn.run_id)
        refused = held is not None and await asyncio.shield(held.stored) is not None
        if not refused and await self._first(turn) is turn:
            await self._run(chat, turn, instead_of)
            return
        del self._running[turn.run_id]
        self._replaces.pop(turn.run_id, None)
        chat.turn, chat.failed = None, held.failed if held is not None else None
        if refused:
            await self._go_on(chat, turn)
        else:
            # The server that took it first sends it.
            self._changed(chat)
