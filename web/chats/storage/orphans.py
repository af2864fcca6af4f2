"""Chats that a server left under way when it died: another one, which has not loaded them, ends
what was cut off and sends what waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from web.chats.storage.stored_records import StoredChatRecords
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import HarnessError, SessionConflict, StoreError

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""After a chat was last heard of, and from then on, it is looked at whether somebody runs it: twice
at least within the time of a lease, as it may take two looks to see that a server is gone."""

AROUND_SECONDS = 10.0
"""Between two looks whether any chat was left, as not every change of others is heard of."""

TICK_SECONDS = 1.0

_Key = tuple[HarnessIdentity, str]


class Orphans:
    """Hears which chats of other servers change, and looks after those that are under way.

    `is_here` says whether a chat is loaded, which looks after itself; `load` loads one.
    """

    def __init__(
        self,
        tasks: TaskOwner,
        sessions: SessionStore,
        records: StoredChatRecords,
        is_here: Callable[[_Key], bool],
        load: Callable[[HarnessIdentity, str], Awaitable[None]],
        *,
        look_seconds: float = LOOK_SECONDS,
        around_seconds: float = AROUND_SECONDS,
    ) -> None:
        self._tasks = tasks
        self._sessions = sessions
        self._records = records
        self._is_here = is_here
        self._load = load
        self._look_seconds = look_seconds
        self._around_seconds = around_seconds
        self._missed = asyncio.Event()
        self._due: dict[_Key, float] = {}
        self._watching = False

    def heard(self, key: _Key) -> None:
        """A chat changed: whoever did that was alive."""
        if self._is_here(key):
            self._due.pop(key, None)
            return
        self._look_later(key)

    def missed(self) -> None:
        """Any chat may have changed."""
        self._missed.set()

    async def look_around(self) -> None:
        """Finds chats of whose last change nobody heard, as long as it is awaited."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._around_seconds):
                    await self._missed.wait()
            self._missed.clear()
            try:
                for key in await self._records.under_way():
                    if key not in self._due and not self._is_here(key):
                        self._look_later(key)
            except StoreError as error:
                log.warning("It is not known which chats were left: %s", error.message)
            # A file says of every commit that something may have changed.
            await asyncio.sleep(self._look_seconds)

    def _look_later(self, key: _Key) -> None:
        self._due[key] = asyncio.get_running_loop().time() + self._look_seconds
        if not self._watching:
            self._watching = True
            self._tasks.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while self._due:
                await asyncio.sleep(min(TICK_SECONDS, self._look_seconds))
                now = asyncio.get_running_loop().time()
                for key in [key for key, due in self._due.items() if due <= now]:
                    if self._due.pop(key, None) is not None:
                        await self._look(key)
        finally:
            self._watching = False

    async def _look(self, key: _Key) -> None:
        try:
            if self._is_here(key) or not await self._is_under_way(key):
                return
            if await self._is_held(key):
                self._look_later(key)
                return
            log.info("The chat %s was left under way; it goes on here", key[1])
            await self._load(*key)
        except HarnessError as error:
            log.warning("It is not known whether the chat %s goes on: %s", key[1], error.message)
            self._look_later(key)

    async def _is_held(self, key: _Key) -> bool:
        """Whether somebody runs a chat; where the store can tell, nothing is written for that."""
        is_held = getattr(self._sessions, "is_held", None)
        if is_held is not None:
            return bool(await is_held(*key))
        try:
            lease = await self._sessions.acquire(*key)
        except SessionConflict:
            return True
        await lease.release()
        return False

    async def _is_under_way(self, key: _Key) -> bool:
        record = await self._records.get(*key)
        return (
            record is not None
            and record.deleted_at is None
            and record.state in ("working", "asking")
        )
