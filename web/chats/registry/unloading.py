"""Chats that nobody uses leave the memory; whoever asks for one has it loaded again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders
from web.chats.memories.memories import ChatMemories
from web.chats.runs.turns import Turns
from web.chats.skills.skills import ChatSkills
from web.chats.storage.loading import Kept, Loading
from web.harness.sessions.identity import HarnessIdentity

IDLE_SECONDS = 1_800.0
"""A chat that nobody has used for so long leaves the memory,"""

MOST_LOADED = 200
"""and where more are loaded, those that nobody has used for"""

REST_SECONDS = 120.0
"""so long: far longer than anything that can be undone, or is done after a run."""

LOOK_SECONDS = 15.0

_Key = tuple[HarnessIdentity, str]


class Unloading(Loading):
    """The part of `Chats` that bounds how many are in memory. Without a store all of them are."""

    files: ChatFolders
    skills: ChatSkills
    memories: ChatMemories
    _turns: Turns

    def __init__(self) -> None:
        super().__init__()
        self._users: Counter[_Key] = Counter()
        self._used: dict[_Key, float] = {}
        self.rest_seconds = REST_SECONDS

    def start(self) -> None:
        super().start()
        if self.kept is not None:
            self._tasks.create_task(self._keep_unloading())

    @contextmanager
    def using(self, identity: HarnessIdentity, chat_ids: Iterable[str]) -> Iterator[None]:
        """While this lasts these chats, if they are there, stay in memory."""
        keys = [(identity, chat_id) for chat_id in chat_ids]
        self._users.update(keys)
        try:
            yield
        finally:
            for key in keys:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key]
                if key in self._chats:
                    self._used[key] = time.monotonic()

    async def unload(self, most: int, *, rest: float | None = None) -> None:
        """Has at most so many chats in memory, those that were used last, as far as the others are
        not needed and nobody has used them for `rest` seconds."""
        now = time.monotonic()
        rest = self.rest_seconds if rest is None else rest
        for key in sorted(self._chats, key=lambda each: self._used.setdefault(each, now)):
            if len(self._chats) <= most:
                return
            if now - self._used.get(key, now) >= rest:
                await self._unload(key)

    async def _keep_unloading(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for key in self._used.keys() - self._chats.keys():
                del self._used[key]
            await self.unload(MOST_LOADED)
            await self.unload(0, rest=IDLE_SECONDS)

    async def _unload(self, key: _Key) -> None:
        chat = self._chats.get(key)
        if chat is None or self.kept is None or self._is_needed(self.kept, chat):
            return
        async with self._locks.of(key):
            # Whoever waited for the lock may have come in between.
            if self._chats.get(key) is not chat or self._is_needed(self.kept, chat):
                return
            # Who asks for it from now on waits until all of it is gone.
            del self._chats[key]
            self._used.pop(key, None)
            self.kept.follower.close(chat)
            self._turns.leave(chat)
            self.files.leave(chat)
            self.skills.close(chat)
            self.memories.close(chat)
            await self.servers.close(chat)

    def _is_needed(self, kept: Kept, chat: Chat) -> bool:
        """Whether somebody uses a chat, or something of it would be lost."""
        key = (chat.identity, chat.id)
        return (
            bool(self._users[key])
            or chat.channel.is_watched
            or chat.is_busy
            or bool(chat.queue)
            or chat.agent is not None
            or chat.state in ("working", "asking")
            or chat.is_deleted
            or chat.id in self._purges
            or not chat.blobs.is_stored
            or kept.records.is_waiting(*key)
            or kept.failure() is not None
            or self.servers.holds(chat)
        )
