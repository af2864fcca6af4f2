"""Deleted chats: for some seconds each can be brought back, on any server; then it is gone."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders
from web.chats.memories.memories import ChatMemories
from web.chats.parts.kinds import Undo
from web.chats.records.records import UNTITLED, ChatRecord
from web.chats.runs.turns import Turns
from web.chats.skills.skills import ChatSkills
from web.chats.storage.loading import Kept, Loading
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.store import SessionStore
from web.harness.values.errors import (
    HarnessError,
    LimitExceeded,
    NotFound,
    SessionConflict,
    StoreError,
)

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Between two tries to delete what another server holds, or what the store refused."""

MARGIN_SECONDS = 0.5
"""Before its time is up, a chat that another server deleted is not brought back any more: it may
be at it by now."""

_Key = tuple[HarnessIdentity, str]


class Deleting(Loading):
    """The part of `Chats` that deletes them. Whoever deleted a chat purges it in time, unless it
    was brought back; where that server has died, the next one to start does."""

    files: ChatFolders
    skills: ChatSkills
    memories: ChatMemories
    _turns: Turns
    _sessions: SessionStore
    _made: OrderedDict[_Key, str]
    """By person and request, the id of the chat that it made."""

    @abstractmethod
    async def _write(self, chat: Chat, record: ChatRecord) -> None: ...

    @abstractmethod
    def _take_record(self, kept: Kept, chat: Chat, record: ChatRecord) -> None: ...

    async def delete(self, chat: Chat, *, with_files: bool = False) -> None:
        """Deletes a chat: what it does is stopped. For some seconds it can be brought back, with
        the messages that wait and the servers that it is connected to. Its files stay on disk, or
        go `with_files` once it cannot be brought back any more."""
        if chat.is_deleted:
            return
        record = replace(chat.record, deleted_at=self._now(), files_go=with_files)
        await self._write(chat, record)
        self._show_deleted(chat.identity, replace(record, title=chat.title))
        chat.channel.end("deleted")
        later = self._purge_later(chat, self.limits.undo_seconds)
        self._purges[chat.id] = self._tasks.create_task(later)
        await self._turns.halt(chat)

    async def restore(self, identity: HarnessIdentity, chat_id: str) -> Chat:
        """Brings a deleted chat back, whichever server deleted it. Raises NotFound when it is too
        late, and StoreError."""
        if self.kept is not None:
            await self._hear_of_deletion(self.kept, identity, chat_id)
        chat = self._chats.get((identity, chat_id))
        if chat is None:
            raise _too_late()
        if chat.is_deleted:
            purge = self._purges.pop(chat_id, None)
            if purge is not None:
                purge.cancel()
            elif self.kept is None or self._until(chat.record) < self._now() + MARGIN_SECONDS:
                raise _too_late()
            self._show_restored(chat)
            await self._write(chat, replace(chat.record, deleted_at=None, files_go=False))
            if self.kept is not None:
                self.kept.follower.resume(chat)
                if not self.servers.holds(chat):
                    self.servers.connect_again(chat)  # It was loaded when it was deleted already.
            # Where too much runs already, what waits goes on waiting, and is shown to.
            with suppress(LimitExceeded):
                self._turns.resume(chat)
        return chat

    async def _hear_of_deletion(self, kept: Kept, identity: HarnessIdentity, chat_id: str) -> None:
        """Has a deleted chat in memory as the store has it: another server may have deleted it."""
        await self.load(identity, chat_id)
        chat = self._chats.get((identity, chat_id))
        if chat is None or kept.records.is_waiting(identity, chat_id):
            return
        record = await kept.records.get(identity, chat_id)
        if record is not None and record.deleted_at != chat.record.deleted_at:
            self._take_record(kept, chat, record)

    def _until(self, record: ChatRecord) -> float:
        """When a deleted chat cannot be brought back any more, in seconds since the epoch."""
        return (record.deleted_at or 0.0) + self.limits.undo_seconds

    def _show_deleted(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        """Has the side bar offer to bring a chat back, in place of its row."""
        side_bar = self.side_bar(identity)
        side_bar.remove(f"r-{record.id}")
        undo = Undo(record.id, record.title or UNTITLED, self._until(record))
        if (left := undo.until - self._now()) > 0:
            side_bar.put(f"z-{record.id}", "undo", undo)
            self._tasks.create_task(self._end_offer(identity, undo, left))

    def _show_restored(self, chat: Chat) -> None:
        self.side_bar(chat.identity).remove(f"z-{chat.id}")
        chat.channel.gone = None
        chat.channel.touch()

    async def _end_offer(self, identity: HarnessIdentity, undo: Undo, seconds: float) -> None:
        await asyncio.sleep(seconds)
        side_bar = self.side_bar(identity)
        part = side_bar.get(f"z-{undo.chat_id}")
        if part is not None and part.data == undo:
            side_bar.remove(part.id)

    async def _go_on_deleting(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        try:
            await self.load(identity, record.id)
        except HarnessError as error:
            log.error("The deleted chat %s cannot be read: %s", record.id, error.message)
            return
        chat = self._chats.get((identity, record.id))
        if chat is None or not chat.is_deleted or record.id in self._purges:
            return
        self._show_deleted(identity, replace(chat.record, title=chat.title))
        left = max(0.0, self._until(chat.record) - self._now())
        self._purges[chat.id] = self._tasks.create_task(self._purge_later(chat, left))

    async def _purge_later(self, chat: Chat, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.kept is not None and await self._was_restored(self.kept, chat):
            return
        self._purges.pop(chat.id, None)
        await self._purge(chat)

    async def _was_restored(self, kept: Kept, chat: Chat) -> bool:
        """Whether another server has brought a chat back, of which nothing was heard here yet."""
        while True:
            try:
                record = await kept.records.get(chat.identity, chat.id)
                break
            except StoreError as error:
                log.warning("A chat is not deleted for good yet: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS)
        if record is None or record.deleted_at is not None:
            return False
        self._take_record(kept, chat, record)
        return True

    async def _purge(self, chat: Chat) -> None:
        await self._turns.close(chat)
        await self.files.close(chat, remove=chat.record.files_go)
        await self._leave(chat)
        said = ""
        while True:
            try:
                return await self._delete_stored(chat)
            except SessionConflict:
                pass  # Another server is at the end of a run that it was told to stop.
            except StoreError as error:
                if error.message != said:  # It may fail for long.
                    said = error.message
                    log.warning("A chat is not deleted for good yet: %s", said)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _delete_stored(self, chat: Chat) -> None:
        """Deletes all that is stored of a chat. Raises SessionConflict and StoreError; what was
        done by then may be done again."""
        for key in [key for key, made in self._made.items() if (key[0], made) == chat.key]:
            if self.kept is not None:
                await self.kept.claims.forget(*key)
            self._made.pop(key, None)
        await self._turns.forget(chat)
        await self._sessions.delete(chat.identity, chat.id)
        if self.kept is not None:
            self.kept.follower.close(chat)
            await self.kept.blobs.delete(chat.identity, chat.id)
        # Last, so that a server that is killed here goes on with it after its start.
        await self._records.delete(chat.identity, chat.id)

    async def _leave(self, chat: Chat) -> None:
        """Forgets a chat that is gone; its files are closed before."""
        await self.servers.close(chat)
        self.skills.close(chat)
        self.memories.close(chat)
        del self._chats[chat.identity, chat.id]


def _too_late() -> NotFound:
    return NotFound("This chat was deleted for good.", hint="Start a new one.")
