"""Chats that outlive the process: they are loaded when somebody asks for them, and listed in pages.

Without a durable store there is nothing to do here, and all chats are in memory.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, fields, replace

from web.chats.chat import Chat
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.kinds import MoreChats, Notice, Row
from web.chats.records.blobs import StoredBlobs
from web.chats.records.chat_limits import ChatLimits
from web.chats.records.merging import merged_entries
from web.chats.records.records import UNTITLED, ChatRecord, ChatRecords
from web.chats.records.titles import title_of, title_of_attached
from web.chats.runs.written_runs import WrittenRuns
from web.chats.servers.servers import Servers
from web.chats.storage.listing import Listed, listed, place_of
from web.chats.storage.locks import Locks
from web.chats.storage.log_follower import LogFollower
from web.chats.storage.request_claims import Claims
from web.chats.storage.stored_records import StoredChatRecords, record_form, with_blocks
from web.chats.tasks import TaskOwner
from web.chats.transcript.transcript import Transcript
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Blobs, Place
from web.harness.tools.permissions import Permissions
from web.harness.values.errors import HarnessError, NotFound, StoreError
from web.harness.values.messages import Message

log = logging.getLogger(__name__)

PAGE_ROWS = 300
"""Chats that the side bar shows at first, and with each "Show more"."""

ROWS_AT_ONCE = 50
"""That are put into it before others have the event loop."""

WATCH_SECONDS = 1.0
"""Between two looks whether the store works."""

_Key = tuple[HarnessIdentity, str]
Survey = Callable[
    [Callable[[_Key], bool], Callable[[HarnessIdentity, str], Awaitable[None]]],
    Coroutine[object, object, None],
]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where chats are kept. `failure` says why the store does not work at the moment."""

    records: StoredChatRecords
    follower: LogFollower
    blobs: Blobs
    claims: Claims
    failure: Callable[[], StoreError | None]
    written: WrittenRuns | None = None
    """Runs that are written down at each step, where they are."""
    survey: Survey | None = None
    """Finds runs of others that nobody performs, where they are written down."""


class Loading(ABC):
    """The part of `Chats` that knows those which are not in memory."""

    kept: Kept | None
    clock: Clock
    limits: ChatLimits
    servers: Servers
    _tasks: TaskOwner
    _now: Callable[[], float]
    _new_id: Callable[[], str]
    _records: ChatRecords
    _chats: dict[_Key, Chat]
    _side_bars: dict[HarnessIdentity, Channel]

    def __init__(self) -> None:
        self._places: dict[HarnessIdentity, Place | None] = {}
        self._purges: dict[str, asyncio.Task[None]] = {}
        """By chat that was deleted here: goes on with that once its time is up."""
        self._locks: Locks[_Key | HarnessIdentity] = Locks()

    @abstractmethod
    def side_bar(self, identity: HarnessIdentity) -> Channel: ...

    @abstractmethod
    def show(self, chat: Chat) -> None: ...

    @abstractmethod
    def _add(self, chat: Chat) -> None: ...

    @abstractmethod
    async def _store(self, chat: Chat, record: ChatRecord) -> None: ...

    @abstractmethod
    async def _settle_taking_back(self, chat: Chat, run_ids: Iterable[str]) -> None: ...

    @abstractmethod
    async def _go_on_deleting(self, identity: HarnessIdentity, record: ChatRecord) -> None: ...

    def start(self) -> None:
        """Goes on with deletions of before, within the life of the tasks."""
        if self.kept is not None:
            self._tasks.create_task(self._sweep(self.kept))
            self._tasks.create_task(self._watch(self.kept))
            if self.kept.survey is not None:
                self._tasks.create_task(
                    self.kept.survey(lambda key: key in self._chats, self._end_left_over)
                )

    async def prepare(self, identity: HarnessIdentity, chat_ids: Iterable[str] = ()) -> None:
        """Has the side bar of a person there, and these chats, if they are the person's.

        Raises StoreError, or JsonRefused for a chat that cannot be read.
        """
        if self.kept is None:
            return
        if identity not in self._places:
            async with self._locks.of(identity):
                if identity not in self._places:
                    await self._list(self.kept, identity, None)
        for chat_id in chat_ids:
            await self.load(identity, chat_id)

    async def load(self, identity: HarnessIdentity, chat_id: str) -> None:
        """Has a chat in memory, if there is one. Raises as `prepare`."""
        key = (identity, chat_id)
        if self.kept is None or key in self._chats:
            return
        async with self._locks.of(key):
            if key not in self._chats:
                record = await self.kept.records.get(identity, chat_id)
                if record is not None:
                    await self._load(self.kept, identity, record)

    async def hear_of(self, identity: HarnessIdentity, chat_id: str, run_id: str) -> None:
        """Has a run of a chat known that another server took a moment ago."""
        chat = self._chats.get((identity, chat_id))
        if self.kept is not None and chat is not None:
            await self.kept.follower.hear_of(chat, run_id)

    def could_not_load(self, chat_id: str, error: HarnessError) -> None:
        """Says in the log why a page is told that a chat is not there."""
        log.error("The chat %s cannot be loaded: %s %s", chat_id[:40], error.message, error.hint)

    async def show_more(self, identity: HarnessIdentity) -> None:
        """Has the side bar show older chats too. Raises StoreError."""
        if self.kept is None:
            return
        async with self._locks.of(identity):
            place = self._places.get(identity)
            if place is not None:
                await self._list(self.kept, identity, place)

    async def known(
        self, identity: HarnessIdentity, *, after: str = "", limit: int | None = None
    ) -> list[Listed]:
        """Every living chat, newest first; of one that is not loaded, its record. A page of them
        begins after the chat `after`. Raises NotFound for one that is not there."""
        loaded = {id: chat for (owner, id), chat in self._chats.items() if owner == identity}
        stored = self.kept.records if self.kept is not None else None
        place: Place | None = None
        if after:
            last = loaded.get(after) or (await stored.get(identity, after) if stored else None)
            if last is None:
                raise NotFound("There is no such chat here.", hint="List from the start again.")
            place = place_of(last)
        return await listed(stored, identity, loaded, place, limit)

    async def messages(self, chat: Chat) -> list[Message]:
        """The conversation as far as it is known by now, whichever server runs it."""
        return chat.messages if self.kept is None else await self.kept.follower.messages(chat)

    def _make(self, identity: HarnessIdentity, record: ChatRecord) -> Chat:
        channel = Channel(record.id, self.clock)
        chat = Chat(identity, record, channel, Transcript(channel))
        if self.kept is not None:
            chat.blobs = StoredBlobs(self.kept.blobs, identity, record.id, self._tasks)
            chat.transcript.written_down = self.kept.written is not None
        return chat

    async def _enter(self, identity: HarnessIdentity, record: ChatRecord) -> Chat:
        """Has a new chat there. Raises StoreError where it is not stored: then there is none."""
        record = replace(record, stored=None)
        chat = self._make(identity, record)
        key = (identity, record.id)
        # Whoever hears of the record asks for the chat, which is this one.
        async with self._locks.of(key):
            await self._store_new(identity, record)
            if self.kept is not None:
                chat.record = replace(record, stored=record_form(record))
            self._chats[key] = chat
            self._add(chat)
        self.show(chat)
        if self.kept is not None:
            await self.kept.follower.begin(chat)
        return chat

    async def _store_new(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        if self.kept is None:
            await self._records.put(identity, record)
            return
        try:
            await self.kept.records.store(identity, record)
        except StoreError as error:
            self.kept.records.drop(identity, record.id)
            words = f"The chat was not made. {error.message}"
            raise StoreError(words, hint=error.hint, code=error.code) from error

    async def _change(self, chat: Chat, record: ChatRecord) -> None:
        """Has a chat's settings be others. Raises StoreError where that is not stored: then they
        are as they were."""
        before = chat.record
        try:
            await self._store(chat, record)
        except StoreError as error:
            if self.kept is None:
                raise
            names = [each.name for each in fields(record)]
            old = {name: getattr(before, name) for name in names}
            ours = {name: each for name, each in old.items() if getattr(record, name) != each}
            chat.record = replace(chat.record, **ours)
            self.show(chat)
            self.kept.records.put_now(chat.identity, chat.record)
            words = f"Nothing was changed. {error.message}"
            raise StoreError(words, hint=error.hint, code=error.code) from error

    async def _made_once(
        self, kept: Kept, identity: HarnessIdentity, request_id: str, record: ChatRecord
    ) -> Chat:
        """The chat that a request makes, or has made before, here or on another server."""

        async def is_gone(chat_id: str) -> bool:
            found = await kept.records.get(identity, chat_id)
            return found is None or found.deleted_at is not None

        key = identity, f"request {request_id}"
        async with self._locks.of(key):
            chat_id = await kept.claims.claim(identity, request_id, record.id, is_gone)
            await self.load(identity, chat_id)
            chat = self._chats.get((identity, chat_id))
            if chat is None or chat.is_deleted:
                chat = await self._enter(identity, replace(record, id=chat_id))
                kept.claims.made(identity, request_id, chat_id)
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
        kept = self.servers.kept(chat)
        if kept is None:
            return
        # Of those that another server has connected, nothing is known here.
        servers = tuple(merged_entries(*kept, chat.record.servers))
        if servers != chat.record.servers:
            chat.record = replace(chat.record, servers=servers)
            self.kept.records.put_now(chat.identity, chat.record)

    def _keep_servers_soon(self, chat: Chat) -> None:
        """The same after all that changes them at this moment, whether anybody looks or not."""
        asyncio.get_running_loop().call_soon(self._keep_servers, chat)

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
        # A page may have seen it before it left the memory, with parts that it has no more.
        chat.channel.begin_anew()
        blocks = await kept.follower.load(chat)
        # What was written of it meanwhile counts.
        record = await kept.records.get(identity, record.id) or record
        chat.record = with_blocks(record, blocks.get)
        _take_sent(chat)
        if not chat.record.title and chat.requests:
            # The server was killed between a message and the title that it gave.
            first = next(iter(chat.requests.values()))
            title = title_of(first.text) or title_of_attached(first.attachments)
            chat.record = replace(chat.record, title=title)
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
        await self._settle_taking_back(chat, chat.record.taking_back)
        self.show(chat)
        kept.follower.resume(chat)

    async def _sweep(self, kept: Kept) -> None:
        """What was deleted before a restart can be brought back for the rest of its time, and what
        was under way has an end."""
        while True:
            try:
                for identity in await kept.records.identities():
                    await self._sweep_of(kept, identity)
                return
            except StoreError as error:
                log.warning("It is not known what was left over: %s", error.message)
                await asyncio.sleep(WATCH_SECONDS)

    async def _sweep_of(self, kept: Kept, identity: HarnessIdentity) -> None:
        after: Place | None = None
        while True:
            records, after = await kept.records.page(identity, after, PAGE_ROWS)
            for record in records:
                if record.deleted_at is not None and record.id not in self._purges:
                    await self._go_on_deleting(identity, record)
                elif record.deleted_at is None and record.state in ("working", "asking"):
                    await self._end_left_over(identity, record.id)
            if after is None:
                return
            await asyncio.sleep(0)

    async def _end_left_over(self, identity: HarnessIdentity, chat_id: str) -> None:
        try:
            await self.prepare(identity, [chat_id])
        except HarnessError as error:
            self.could_not_load(chat_id, error)

    async def _watch(self, kept: Kept) -> None:
        """Says on every page when the store does not work, and when it does again."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            failure = kept.failure()
            told = told_of(failure) if failure is not None else {}
            for side_bar in self._side_bars.values():
                for id in ("z-store", "z-temporal"):
                    if id in told:
                        side_bar.put(id, "undo", told[id])
                    else:
                        side_bar.remove(id)


def _take_sent(chat: Chat) -> None:
    """Has the record of a chat be without what went with messages after which a server was killed
    before it could say so there."""
    record = replace(chat.record, attachments=chat.pending)
    for turn in chat.requests.values():
        if turn.at > record.order:
            # What was typed after that was kept with the time of that message.
            record = replace(turn.without_draft(record), order=turn.at)
    chat.record = record


def told_of(failure: StoreError) -> dict[str, Notice]:
    """A store that does not work, as every page says it, by the id of the part.

    That of Temporal is one of its own: a page does not show it where an answer that waits for
    Temporal says the same.
    """
    if failure.code == "temporal_unreachable":
        # The log of the server has the words of the connection; they say nothing to a reader.
        words = "Temporal does not answer. Messages are kept, and answered once it does."
        return {"z-temporal": Notice(words)}
    if failure.code.startswith("temporal_"):
        words = f"{failure.message} Messages are kept, and answered once that is mended."
        return {"z-temporal": Notice(words)}
    if failure.code == "store_read_only":
        later = "What is stored can be read, and nothing new is kept."
    else:
        later = "What is new is kept in memory and written later."
    return {"z-store": Notice(f"{failure.message} {later}", failure.hint)}


def show_row(side_bar: Channel, record: ChatRecord) -> None:
    """Shows a chat that is not in memory."""
    row = Row(record.id, record.title or UNTITLED, record.state, record.order)
    side_bar.put(f"r-{record.id}", "chats", row, rank=-record.order)
