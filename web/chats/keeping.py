"""Chats that outlive the process: they are loaded when somebody asks for them, and listed in pages.

Without a durable store there is nothing to do here, and all chats are in memory.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from web.chats.blobs import StoredBlobs
from web.chats.chat import Chat, Turn
from web.chats.chat_limits import ChatLimits
from web.chats.hearing import Hearing
from web.chats.kinds import MoreChats, Notice, Row, Undo
from web.chats.parts import Channel, Clock
from web.chats.records import UNTITLED, ChatRecord
from web.chats.servers import Servers
from web.chats.stored_records import StoredChatRecords, with_blocks
from web.chats.tasks import TaskOwner
from web.chats.titles import title_of, title_of_attached
from web.chats.transcript import Transcript
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Blobs, Place
from web.harness.tools.permissions import Permissions
from web.harness.values.errors import HarnessError, StoreError
from web.harness.values.messages import AttachedBlock, ImageBlock

log = logging.getLogger(__name__)

PAGE_ROWS = 300
"""Chats that the side bar shows at first, and with each "Show more"."""

ROWS_AT_ONCE = 50
"""That are put into it before others have the event loop."""

WATCH_SECONDS = 1.0
"""Between two looks whether the store works."""

_Key = tuple[HarnessIdentity, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where chats are kept. `failure` says why the store does not work at the moment."""

    records: StoredChatRecords
    hearing: Hearing
    blobs: Blobs
    failure: Callable[[], StoreError | None]


class Keeping(ABC):
    """The part of `Chats` that knows those which are not in memory."""

    kept: Kept | None
    clock: Clock
    limits: ChatLimits
    servers: Servers
    _tasks: TaskOwner
    _now: Callable[[], float]
    _new_id: Callable[[], str]
    _chats: dict[_Key, Chat]
    _purges: dict[str, asyncio.Task[None]]
    _side_bars: dict[HarnessIdentity, Channel]

    def __init__(self) -> None:
        self._places: dict[HarnessIdentity, Place | None] = {}
        self._loads: dict[_Key | HarnessIdentity, asyncio.Lock] = {}

    @abstractmethod
    def side_bar(self, identity: HarnessIdentity) -> Channel: ...

    @abstractmethod
    def show(self, chat: Chat) -> None: ...

    @abstractmethod
    def _add(self, chat: Chat) -> None: ...

    @abstractmethod
    async def _purge_later(self, chat: Chat, seconds: float) -> None: ...

    def start(self) -> None:
        """Goes on with deletions of before, within the life of the tasks."""
        if self.kept is not None:
            self._tasks.create_task(self._sweep(self.kept))
            self._tasks.create_task(self._watch(self.kept))

    async def prepare(self, identity: HarnessIdentity, chat_ids: Iterable[str] = ()) -> None:
        """Has the side bar of a person there, and these chats, if they are the person's.

        Raises StoreError, or JsonRefused for a chat that cannot be read.
        """
        if self.kept is None:
            return
        if identity not in self._places:
            async with self._lock(identity):
                if identity not in self._places:
                    await self._list(self.kept, identity, None)
        for chat_id in chat_ids:
            await self.load(identity, chat_id)

    async def load(self, identity: HarnessIdentity, chat_id: str) -> None:
        """Has a chat in memory, if there is one. Raises as `prepare`."""
        key = (identity, chat_id)
        if self.kept is None or key in self._chats:
            return
        async with self._lock(key):
            if key not in self._chats:
                record = await self.kept.records.get(identity, chat_id)
                if record is not None:
                    await self._load(self.kept, identity, record)
        self._loads.pop(key, None)

    def could_not_load(self, chat_id: str, error: HarnessError) -> None:
        """Says in the log why a page is told that a chat is not there."""
        log.error("The chat %s cannot be loaded: %s %s", chat_id[:40], error.message, error.hint)

    async def show_more(self, identity: HarnessIdentity) -> None:
        """Has the side bar show older chats too. Raises StoreError."""
        if self.kept is None:
            return
        async with self._lock(identity):
            place = self._places.get(identity)
            if place is not None:
                await self._list(self.kept, identity, place)

    async def known(self, identity: HarnessIdentity) -> list[Chat | ChatRecord]:
        """Every living chat, newest first; of one that is not loaded, its record."""
        loaded = {id: chat for (owner, id), chat in self._chats.items() if owner == identity}
        found: list[Chat | ChatRecord] = []
        if self.kept is not None:
            for record in await self.kept.records.list(identity):
                chat = loaded.pop(record.id, None)
                if chat is None and record.deleted_at is None:
                    found.append(record)
                elif chat is not None and not chat.is_deleted:
                    found.append(chat)
        found += [chat for chat in loaded.values() if not chat.is_deleted]
        return sorted(found, key=_order, reverse=True)

    def _make(self, identity: HarnessIdentity, record: ChatRecord) -> Chat:
        channel = Channel(record.id, self.clock)
        chat = Chat(identity, record, channel, Transcript(channel))
        if self.kept is not None:
            chat.blobs = StoredBlobs(self.kept.blobs, identity, record.id, self._tasks)
        return chat

    def _run_id(self, chat: Chat) -> str:
        """A new one; where chats are loaded by it, it begins with the chat's."""
        return self._new_id() if self.kept is None else f"{chat.id}{self._new_id()}"

    def _keep_grants(self, chat: Chat) -> None:
        """Has what a person allowed for a chat outlive the process, and what it is at."""
        if self.kept is None:
            return
        grants = tuple(chat.grants) if chat.permissions is not None else chat.record.grants
        record = replace(chat.record, grants=grants, state=chat.state)
        if record != chat.record:
            chat.record = record
            self.kept.records.put_now(chat.identity, record)

    def _keep_servers(self, chat: Chat) -> None:
        """Has the settings of a chat's own servers outlive the process."""
        if self.kept is None or chat.is_deleted:
            return
        servers = self.servers.kept(chat)
        if servers is not None and servers != chat.record.servers:
            chat.record = replace(chat.record, servers=servers)
            self.kept.records.put_now(chat.identity, chat.record)

    def _keep_servers_soon(self, chat: Chat) -> None:
        """The same after all that changes them at this moment, whether anybody looks or not."""
        asyncio.get_running_loop().call_soon(self._keep_servers, chat)

    def _lock(self, key: _Key | HarnessIdentity) -> asyncio.Lock:
        return self._loads.setdefault(key, asyncio.Lock())

    async def _list(self, kept: Kept, identity: HarnessIdentity, after: Place | None) -> None:
        side_bar = self.side_bar(identity)
        records, following = await kept.records.page(identity, after, PAGE_ROWS)
        for at, record in enumerate(records, 1):
            if record.deleted_at is None and (identity, record.id) not in self._chats:
                show_row(side_bar, record)
            if at % ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._places[identity] = following
        if following is None:
            side_bar.remove("more-chats")
        else:
            side_bar.put("more-chats", "chats-more", MoreChats(PAGE_ROWS))

    async def _load(self, kept: Kept, identity: HarnessIdentity, record: ChatRecord) -> None:
        chat = self._make(identity, record)
        blocks = await kept.hearing.load(chat)
        # What was written of it meanwhile counts.
        record = await kept.records.get(identity, record.id) or record
        for id, block in list(blocks.items()):
            if any(each.id == id for each in record.attachments):
                blocks[id] = await _with_bytes(chat, block)
        chat.record = with_blocks(record, blocks.get)
        if not chat.record.title and chat.requests:
            # The server was killed between a message and the title that it gave.
            first = next(iter(chat.requests.values()))
            title = title_of(first.text) or title_of_attached(first.attachments)
            chat.record = replace(chat.record, title=title)
        chat.queue[:] = [await _turn_with_bytes(chat, turn) for turn in chat.queue]
        if chat.failed is not None:
            chat.failed = await _turn_with_bytes(chat, chat.failed)
        chat.permissions = Permissions(grants=record.grants)
        self._chats[identity, record.id] = chat
        self._add(chat)
        if not chat.is_deleted:
            self.servers.connect_again(chat)
        chat.show_attachments()
        chat.show_grants()
        if chat.spending.turns:
            chat.spending.show(chat.channel)
        if chat.is_deleted:
            chat.channel.end("deleted")
            return
        self.show(chat)
        kept.hearing.resume(chat)

    async def _sweep(self, kept: Kept) -> None:
        """What was deleted before a restart can be brought back for the rest of its time, and what
        was under way has an end."""
        for identity in await kept.records.identities():
            after: Place | None = None
            while True:
                records, after = await kept.records.page(identity, after, PAGE_ROWS)
                for record in records:
                    if record.deleted_at is not None and record.id not in self._purges:
                        await self._go_on_deleting(identity, record)
                    elif record.deleted_at is None and record.state in ("working", "asking"):
                        await self._end_left_over(identity, record.id)
                if after is None:
                    break
                await asyncio.sleep(0)

    async def _end_left_over(self, identity: HarnessIdentity, chat_id: str) -> None:
        try:
            await self.prepare(identity, [chat_id])
        except HarnessError as error:
            self.could_not_load(chat_id, error)

    async def _go_on_deleting(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        until = (record.deleted_at or 0) + self.limits.undo_seconds
        try:
            await self.load(identity, record.id)
        except HarnessError as error:
            log.error("The deleted chat %s cannot be read: %s", record.id, error.message)
            return
        chat = self._chats.get((identity, record.id))
        if chat is None or not chat.is_deleted or record.id in self._purges:
            return
        left = max(0.0, until - self._now())
        if left:
            undo = Undo(chat.id, chat.title, until)
            self.side_bar(identity).put(f"z-{chat.id}", "undo", undo)
        self._purges[chat.id] = self._tasks.create_task(self._purge_later(chat, left))

    async def _watch(self, kept: Kept) -> None:
        """Says on every page when the store does not work, and when it does again."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            failure = kept.failure()
            for side_bar in self._side_bars.values():
                if failure is None:
                    side_bar.remove("z-store")
                else:
                    words = f"{failure.message} What is new is kept in memory and written later."
                    side_bar.put("z-store", "undo", Notice(words, failure.hint))


def show_row(side_bar: Channel, record: ChatRecord) -> None:
    """Shows a chat that is not in memory."""
    row = Row(record.id, record.title or UNTITLED, record.state, record.order)
    side_bar.put(f"r-{record.id}", "chats", row, rank=-record.order)


def _order(each: Chat | ChatRecord) -> float:
    return each.order if isinstance(each, ChatRecord) else each.record.order


async def _turn_with_bytes(chat: Chat, turn: Turn) -> Turn:
    blocks = [await _with_bytes(chat, block) for block in turn.attachments]
    return replace(turn, attachments=tuple(blocks))


async def _with_bytes(chat: Chat, block: AttachedBlock) -> AttachedBlock:
    """A picture with its bytes; where they are lost, it says so to a model."""
    if not isinstance(block, ImageBlock) or block.data or block.left_out:
        return block
    found = await chat.blobs.fetch(block.sha256)
    if found is None:
        return replace(block, left_out="it is not kept any more")
    return replace(block, data=found.data, length=0)
