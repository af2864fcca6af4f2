"""What goes with the next message of a chat: its draft and what is attached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from web.chats.chat import Chat
from web.chats.journal.journal import Attached
from web.chats.records.attachments import PendingAttachment
from web.chats.records.chat_limits import ChatLimits
from web.chats.records.records import ChatRecord
from web.chats.records.titles import checked_draft
from web.chats.runs.turns import Turns
from web.harness.values.errors import StoreError
from web.harness.values.messages import AttachedBlock


class Composing(ABC):
    """The part of `Chats` that keeps what was not sent yet."""

    limits: ChatLimits
    _new_id: Callable[[], str]
    _turns: Turns

    @abstractmethod
    async def _write(self, chat: Chat, record: ChatRecord) -> None: ...

    @abstractmethod
    async def _store(self, chat: Chat, record: ChatRecord) -> None: ...

    async def attach(self, chat: Chat, blocks: Sequence[AttachedBlock]) -> None:
        """Attaches something to the next message, all or none. Raises LimitExceeded."""
        self.check_attachments(chat, blocks)
        chat.keep_pictures(blocks)
        await self._attached(chat, blocks)

    def check_attachments(self, chat: Chat | None, blocks: Sequence[AttachedBlock]) -> None:
        """Raises what `attach` would raise; without a chat, for a new one."""
        pending = chat.record.attachments if chat is not None else ()
        self.limits.attachments.check([*(each.block for each in pending), *blocks])

    async def detach(self, chat: Chat, attachment_id: str) -> None:
        """Takes an attachment off the next message; one that is not there is fine."""
        left = [each for each in chat.record.attachments if each.id != attachment_id]
        await self._write(chat, replace(chat.record, attachments=tuple(left)))
        chat.show_attachments()

    async def _attached(self, chat: Chat, blocks: Sequence[AttachedBlock]) -> None:
        new = [PendingAttachment(self._new_id(), block) for block in blocks]
        for each in new:
            self._turns.journal.write(chat, Attached(each.id, each.block))
        await chat.blobs.flush()
        # The record has their ids alone: first what they are.
        await self._turns.journal.flush(chat)
        attachments = (*chat.record.attachments, *new)
        await self._write(chat, replace(chat.record, attachments=attachments))
        chat.show_attachments()

    async def keep_draft(self, chat: Chat, text: str) -> None:
        """Remembers what is typed and not sent. Raises LimitExceeded; then the last one stays."""
        self.check_draft(text)
        await self._write(chat, replace(chat.record, draft=text))

    async def store_draft(self, chat: Chat, text: str) -> None:
        """The same, and returns once it is stored. Raises StoreError where it is not yet: it is
        remembered all the same, and stored as soon as that can be done."""
        self.check_draft(text)
        try:
            await self._store(chat, replace(chat.record, draft=text))
        except StoreError as error:
            raise StoreError(
                f"What you typed is not stored yet. {error.message}",
                hint="This browser and the server's memory have it, and it is stored as soon as "
                "that can be done.",
                code=error.code,
            ) from error

    def check_draft(self, text: str) -> None:
        """Raises what `keep_draft` would raise."""
        checked_draft(text, self.limits.max_draft_chars)
