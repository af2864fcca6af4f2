"""What goes with the next message of a chat: its draft and what is attached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from web.chats.chat import Chat, Turn
from web.chats.journal.journal import Attached
from web.chats.records.attachments import PendingAttachment
from web.chats.records.chat_limits import ChatLimits
from web.chats.records.records import ChatRecord
from web.chats.records.titles import checked_draft
from web.chats.runs.turns import Turns
from web.harness.values.errors import HarnessError, StoreError
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
        pending = chat.pending if chat is not None else ()
        self.limits.attachments.check([*(each.block for each in pending), *blocks])

    async def detach(self, chat: Chat, attachment_id: str) -> None:
        """Takes an attachment off the next message; one that is not there is fine."""
        left = [each for each in chat.record.attachments if each.id != attachment_id]
        await self._write(chat, replace(chat.record, attachments=tuple(left)))
        chat.show_attachments()

    async def take_back(self, chat: Chat, run_id: str) -> str:
        """Takes a waiting message out of the queue; returns its text. Raises NotFound, and
        SessionConflict where another server began with it first.

        Its text is before the draft then, and its attachments are the next message's again.
        """
        begins = run_id not in chat.record.taking_back
        if begins and any(each.run_id == run_id for each in chat.queue):
            # First that it is to come back: whoever loads the chat after a crash sees to it.
            taking_back = (*chat.record.taking_back, run_id)
            await self._write(chat, replace(chat.record, taking_back=taking_back))
        try:
            turn = await self._turns.take_back(chat, run_id)
        except HarnessError:
            if begins:
                await self._not_taken_back(chat, run_id)
            raise
        await self._came_back(chat, turn)
        return turn.text

    async def _settle_taking_back(self, chat: Chat, run_ids: Iterable[str]) -> None:
        """Brings to its end what a server that was killed took back."""
        for run_id in run_ids:
            if run_id not in chat.record.taking_back:
                continue
            try:
                turn = chat.taken_back.get(run_id) or await self._turns.take_back(chat, run_id)
            except HarnessError:
                await self._not_taken_back(chat, run_id)
            else:
                await self._came_back(chat, turn)

    async def _not_taken_back(self, chat: Chat, run_id: str) -> None:
        if run_id in chat.record.taking_back:
            await self._write(chat, _settled(chat.record, run_id))

    async def _came_back(self, chat: Chat, turn: Turn) -> None:
        # Under the same ids whoever does it: another server may do so at the same time.
        ids = [f"{turn.run_id}-{at}" for at in range(len(turn.attachments))]
        new = tuple(map(PendingAttachment, ids, turn.attachments))
        await self._write_attached(chat, new)
        if turn.run_id not in chat.record.taking_back:
            return  # It has done so.
        record = _settled(chat.record, turn.run_id)
        draft = before_draft(record.draft, turn.text)
        attachments = (*(each for each in record.attachments if each.id not in ids), *new)
        await self._write(chat, replace(record, draft=draft, attachments=attachments))
        chat.show_attachments()

    async def _attached(self, chat: Chat, blocks: Sequence[AttachedBlock]) -> None:
        new = tuple(PendingAttachment(self._new_id(), block) for block in blocks)
        await self._write_attached(chat, new)
        attachments = (*chat.record.attachments, *new)
        await self._write(chat, replace(chat.record, attachments=attachments))
        chat.show_attachments()

    async def _write_attached(self, chat: Chat, new: Sequence[PendingAttachment]) -> None:
        for each in new:
            self._turns.journal.write(chat, Attached(each.id, each.block))
        await chat.blobs.flush()
        # The record has their ids alone: first what they are.
        await self._turns.journal.flush(chat)

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


def before_draft(draft: str, text: str) -> str:
    """A text before what is typed and not sent."""
    return "\n\n".join(part for part in (text, draft) if part.strip())


def _settled(record: ChatRecord, run_id: str) -> ChatRecord:
    left = tuple(each for each in record.taking_back if each != run_id)
    return replace(record, taking_back=left)
