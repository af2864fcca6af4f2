"""What other servers on the same store do with chats: it is shown here, too."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.records.records import ChatRecord
from web.chats.storage.deleting import Deleting
from web.chats.storage.loading import Kept, show_row
from web.chats.storage.orphans import Orphans
from web.chats.storage.stored_records import rebased, record_form, with_blocks
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Record
from web.harness.tools.permissions import Permissions
from web.harness.values.errors import HarnessError

log = logging.getLogger(__name__)

_Key = tuple[HarnessIdentity, str]

SETTLED_SECONDS = 10.0
"""Whoever takes a message back has it in the draft by then, or was killed."""


class OtherServers(Deleting):
    """The part of `Chats` that follows other servers. In memory there are none."""

    _orphans: Orphans

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[_Key] = set()
        self._passed: set[_Key] = set()
        """That changed while something newer of them waits, or is to come: looked at after that."""
        self._looking = False

    def start(self) -> None:
        super().start()
        if self.kept is not None:
            self._orphans = Orphans(
                self._tasks,
                self._sessions,
                self.kept.records,
                lambda key: key in self._chats,
                self.load,
            )
            self.kept.records.listen(self._heard_record)
            self.kept.records.written = self._written_record
            self.kept.follower.attached_to = lambda chat: self._look_soon(chat.key)
            self._tasks.create_task(self._orphans.look_around())

    def _heard_record(self, changed: _Key | None) -> None:
        if changed is not None:
            self._changed.add(changed)
            self._orphans.heard(changed)
        else:
            self._orphans.missed()
            # It may be any: of those that are on a page, each is looked at.
            self._changed.update(self._chats)
        self._look_soon()

    def _look_soon(self, *keys: _Key) -> None:
        self._changed.update(keys)
        if self._changed and not self._looking:
            self._looking = True
            self._tasks.create_task(self._look_at_records())

    def _written_record(
        self, identity: HarnessIdentity, written: ChatRecord, row: Record | None
    ) -> None:
        """What others had changed of a record that was written here."""
        key = (identity, written.id)
        chat = self._chats.get(key)
        if self.kept is not None and chat is not None and row is not None:
            self._take_changes(self.kept, chat, rebased(chat.record, row, written))
        if key in self._passed:
            self._passed.discard(key)
            self._look_soon(key)

    async def _look_at_records(self) -> None:
        try:
            while self._changed and self.kept is not None:
                key = self._changed.pop()
                is_shown = key[0] in self._places or key in self._chats
                if is_shown and not self._passes(self.kept, key):
                    await self._look_at(self.kept, key)
        finally:
            self._looking = False

    async def _look_at(self, kept: Kept, key: _Key) -> None:
        chat = self._chats.get(key)
        before = chat.record if chat is not None else None
        try:
            record = await kept.records.get(*key)
        except HarnessError as error:
            log.warning("A chat that changed could not be read: %s", error.message)
            return
        chat = self._chats.get(key)
        if (chat.record if chat is not None else None) is not before:
            self._changed.add(key)  # It changed here meanwhile: both count.
            return
        if self._passes(kept, key):
            return
        if chat is None:
            self._show_unloaded(key, record)
        elif record is None:
            if chat.turn is not None:
                self._passed.add(key)  # At the end of its run, too, its record would be written.
            elif key[1] not in self._purges:
                await self._forget_here(kept, chat)
        elif record.stored is not None:
            self._take_changes(kept, chat, rebased(chat.record, record.stored))

    def _take_changes(self, kept: Kept, chat: Chat, record: ChatRecord) -> None:
        if record_form(record) != record_form(chat.record):
            self._take_record(kept, chat, record)
        else:
            chat.record = replace(chat.record, stored=record.stored)

    def _passes(self, kept: Kept, key: _Key) -> bool:
        """Whether a record is left alone for now, as it is about to be written."""
        if kept.records.is_waiting(*key):
            self._passed.add(key)
            return True
        return False

    def _show_unloaded(self, key: _Key, record: ChatRecord | None) -> None:
        identity, chat_id = key
        side_bar, place = self.side_bar(identity), self._places.get(identity)
        if record is None:
            side_bar.remove(f"r-{chat_id}")
            side_bar.remove(f"z-{chat_id}")
        elif record.deleted_at is not None:
            self._show_deleted(identity, record)
        elif place is None or record.order >= place.place:
            side_bar.remove(f"z-{chat_id}")
            show_row(side_bar, record)

    def _take_record(self, kept: Kept, chat: Chat, record: ChatRecord) -> None:
        """What another server wrote of a chat that is in memory here, too."""
        was_deleted = chat.is_deleted
        known = {each.id: each.block for each in chat.record.attachments}
        known.update(kept.follower.attached(chat))
        if chat.permissions is None and record.grants != chat.record.grants:
            chat.permissions = Permissions(grants=record.grants)
        for tool in {*chat.record.grants} - {*record.grants}:
            chat.revoke(tool)
        for tool in {*record.grants} - {*chat.record.grants}:
            if chat.permissions is not None:
                chat.permissions.grant(tool)
        heard = {*record.taking_back} - {*chat.record.taking_back}
        if heard:
            self._tasks.create_task(self._settle_later(chat, heard))
        if chat.turn is None:
            # Whoever runs it says what it is at: it may not all have been heard of here.
            record = replace(record, state=chat.record.state)
        chat.record = with_blocks(record, known.get)
        chat.show_attachments()
        chat.show_grants()
        if chat.is_deleted and not was_deleted:
            self._show_deleted(chat.identity, record)
            chat.channel.end("deleted")
        elif was_deleted and not chat.is_deleted:
            if (purge := self._purges.pop(chat.id, None)) is not None:
                purge.cancel()
            self._show_restored(chat)
        chat.channel.touch()
        self.show(chat)

    async def _settle_later(self, chat: Chat, run_ids: set[str]) -> None:
        await asyncio.sleep(SETTLED_SECONDS)
        if self._chats.get(chat.key) is chat and not chat.is_deleted:
            await self._settle_taking_back(chat, run_ids)

    async def _forget_here(self, kept: Kept, chat: Chat) -> None:
        """Another server deleted it for good."""
        self.side_bar(chat.identity).remove(f"r-{chat.id}")
        chat.record = replace(chat.record, deleted_at=chat.record.deleted_at or self._now())
        chat.channel.end("deleted")
        await asyncio.sleep(0)
        kept.follower.close(chat)
        self._turns.leave(chat)
        self.files.leave(chat)
        await self._leave(chat)
