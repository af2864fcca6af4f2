"""Chats saved as snapshots, and made of them: what a person downloads and drops in again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial

from web.chats.chat import Chat, Turn
from web.chats.records.titles import title_of
from web.chats.registry.chats import Chats
from web.chats.runs.driver import PINNED
from web.chats.runs.durability import LEASE_WAIT_SECONDS
from web.chats.runs.equipment import Equipment
from web.chats.runs.turns import Turns
from web.chats.setup import configured, setup_of
from web.chats.snapshots.forked_files import copy_files
from web.chats.snapshots.unpacking import PackedChat, is_zip, read_packed, unpack
from web.chats.transcript.retold import RetoldRun, renamed_ids, retold
from web.chats.transcript.spending import SPENT, Spending
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.snapshots.form import check_size, read_snapshot, write_snapshot
from web.harness.snapshots.snapshot import Snapshot
from web.harness.tools.threads import run_in_thread
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.errors import LimitExceeded, SessionConflict, SnapshotRefused
from web.harness.values.events import Note
from web.harness.values.json_form import json_text
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import JsonObject, Message
from web.harness.values.usage import Usage

BROUGHT = "brought"
"""Where a session's state keeps what came with a snapshot and is nothing to a chat: its metadata,
the state of extensions, and the `extra` of its configuration. It is saved with it again. As one
text of JSON: each turn copies the state of its session, and a text costs nothing then."""

MAX_AT_ONCE = 4
"""Snapshots that are read or written at the same time; each may take some hundred megabytes."""

FILLED_SECONDS = 4.0
"""For another server that makes the same chat."""

LOADED = "Loaded from a snapshot."

TITLE = "title"
"""Of a snapshot's metadata: the title of the chat."""


class ChatSnapshots:
    """Saves the chats of `chats` and makes new ones. A snapshot has at most `max_bytes`."""

    def __init__(
        self,
        chats: Chats,
        turns: Turns,
        sessions: SessionStore,
        equipment: Equipment,
        *,
        max_bytes: int,
        now: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self._chats = chats
        self._turns = turns
        self._sessions = sessions
        self._equipment = equipment
        self.max_bytes = max_bytes
        self._now = now
        self._new_id = new_id
        self._underway = 0
        self._making: dict[tuple[HarnessIdentity, str], asyncio.Event] = {}
        """By the request that makes a chat just now; set once that has ended."""

    async def save(self, chat: Chat) -> bytes:
        """The file of a chat as it is settled now.

        Raises SessionConflict while an answer is written, LimitExceeded, SnapshotRefused.
        """
        await self._turns.settle(chat)
        if chat.turn is not None:
            raise SessionConflict(
                "This chat is writing an answer, and a snapshot holds no run under way.",
                hint="Save it when the answer has ended, or stop it.",
            )
        with self.place():
            # Another server may be reading what its page shows.
            lease = await self._sessions.acquire(chat.identity, chat.id, wait=LEASE_WAIT_SECONDS)
            async with lease:
                session = await lease.read()
            return await asyncio.to_thread(
                lambda: write_snapshot(self._snapshot(chat, session), self.max_bytes)
            )

    async def load(self, identity: HarnessIdentity, data: bytes, *, request_id: str = "") -> Chat:
        """A new chat that goes on where a snapshot ends, or the zip of a whole chat. What is not
        as it was, its log says.

        Whoever calls it has a `place`. The same request id again gives the chat it made. Raises
        SnapshotRefused, LimitExceeded.
        """
        packed = None
        if is_zip(data):
            limits = self._chats.files.limits
            packed = await asyncio.to_thread(read_packed, data, limits, self.max_bytes)
            data = packed.snapshot
        check_size(len(data), self.max_bytes)
        snapshot = await asyncio.to_thread(read_snapshot, data, self.max_bytes)
        async with self._alone(identity, request_id):
            bring = partial(self._unpack, packed) if packed is not None else None
            return await self._begin(identity, snapshot, bring, LOADED, request_id)

    async def branch(
        self,
        chat: Chat,
        messages: Sequence[Message],
        at: float,
        title: str,
        words: str,
        request_id: str = "",
    ) -> Chat:
        """A new chat with the settings of another, also what is switched off in it, with these
        messages of it, and with its files as they were `at` seconds since the epoch. Servers that
        it alone is connected to are left to it.

        `words` say at their end where it comes from. Whoever calls it has a `place`. The same
        request id again gives the chat it made. Raises LimitExceeded.
        """

        async def bring(made: Chat) -> str:
            await self._chats.change(made, switched_as=chat.record)
            files = self._chats.files
            return await copy_files(files.of(chat), files.of(made), at)

        snapshot = replace(
            self._snapshot(chat, SessionSnapshot(tuple(messages))),
            usage=Usage(),
            cost=None,
            metadata={TITLE: title},
        )
        async with self._alone(chat.identity, request_id):
            return await self._begin(chat.identity, snapshot, bring, words, request_id)

    @asynccontextmanager
    async def _alone(self, identity: HarnessIdentity, request_id: str) -> AsyncIterator[None]:
        """Whoever sends a request again waits for what becomes of it."""
        key = identity, request_id
        while request_id and (before := self._making.get(key)) is not None:
            await before.wait()
        ended = self._making[key] = asyncio.Event()
        try:
            yield
        finally:
            if self._making.get(key) is ended:
                del self._making[key]
            ended.set()

    async def _begin(
        self,
        identity: HarnessIdentity,
        snapshot: Snapshot,
        bring: Callable[[Chat], Awaitable[str]] | None,
        words: str,
        request_id: str,
    ) -> Chat:
        """Makes a chat of a snapshot, or finds the one that was made. `bring` brings what is not in
        the snapshot, and gives words on it."""
        wanted = str(snapshot.config.model)
        model = wanted if wanted in self._chats.models else self._chats.models[0]
        kept_title = snapshot.metadata.get(TITLE)
        most = self._chats.limits.max_title_chars
        title = " ".join(kept_title.split())[:most] if isinstance(kept_title, str) else ""
        prompt = snapshot.config.system_prompt
        standard = self._equipment.config
        chat = await self._chats.create(
            identity,
            title=title,
            model=model,
            system_prompt="" if prompt == standard.system_prompt else prompt,
            request_id=request_id,
        )
        if chat.runs:
            return chat
        # What is sent to it meanwhile waits.
        chat.turn = Turn(self._new_id(), "", model, "")
        try:
            if bring is not None:
                words += await bring(chat)
            await self._fill(chat, snapshot, standard, words)
        except SessionConflict:
            # Another server, which was sent the same request, is at it.
            chat.turn = None
            raise
        except BaseException:
            chat.turn = None
            # Half a conversation is none; what is deleted here was never seen.
            await self._chats.delete(chat)
            raise
        return chat

    async def _unpack(self, packed: PackedChat, chat: Chat) -> str:
        """Makes the folder of a new chat of what came with its snapshot."""
        files = self._chats.files
        try:
            await run_in_thread(
                lambda: unpack(packed, files.folder(chat), files.limits), finish=True
            )
        except OSError as error:
            raise SnapshotRefused(
                f"The disk refused: {error.strerror or type(error).__name__}.",
                hint="No chat was made.",
            ) from error
        return ""

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the few places at work, taken before a file is read into memory.

        Raises LimitExceeded where none is free.
        """
        if self._underway >= MAX_AT_ONCE:
            raise LimitExceeded(
                f"{MAX_AT_ONCE} snapshots are read or written on this server, its limit.",
                hint="Try again in a moment.",
            )
        self._underway += 1
        try:
            yield
        finally:
            self._underway -= 1

    def _snapshot(self, chat: Chat, session: SessionSnapshot) -> Snapshot:
        brought = json.loads(session.state.get(BROUGHT, "{}"))
        model = ModelName.parse(chat.record.model)
        config = configured(
            self._equipment.config,
            model,
            chat.record.system_prompt,
            chat.record.setup,
            self._equipment.prices,
        )
        ids = {message.id for message in session.history}
        totals = chat.spending.totals
        titled = {TITLE: chat.record.title} if chat.record.title else {}
        return Snapshot(
            chat.id,
            replace(config, extra=brought.get("extra", {})),
            session.history,
            totals.usage,
            totals.cost,
            _learned(self._equipment.learned, model, brought.get("learned_limits", {})),
            tuple(each for each in session.state.get(PINNED, ()) if each in ids),
            {**brought.get("metadata", {}), **titled},
            brought.get("extensions", {}),
            chat.record.created_at,
            self._now(),
        )

    async def _fill(
        self, chat: Chat, snapshot: Snapshot, standard: AgentConfig, words: str
    ) -> None:
        """Gives a new chat all that the snapshot holds, and shows it."""
        setup, bounded = setup_of(snapshot.config, standard)
        await self._chats.change(chat, setup=setup)
        runs, new_ids = await asyncio.to_thread(_retold, snapshot.messages, self._new_id)
        spending = Spending(turns=len(runs))
        spending.totals.restore(snapshot.usage, snapshot.cost)
        state: JsonObject = {
            SPENT: spending.as_json(),
            PINNED: [new_ids[each] for each in snapshot.pinned],
            BROUGHT: await asyncio.to_thread(_brought, snapshot),
        }
        history = tuple(message for run in runs for message in run.messages)
        lease = await self._sessions.acquire(chat.identity, chat.id, wait=FILLED_SECONDS)
        async with lease:
            if (await lease.read()).revision:
                chat.turn = None
                return  # By another server, which was sent the same request.
            await lease.commit(SessionSnapshot(history, {}, state))
        chat.history, chat.spending = list(history), spending
        chat.spending.show(chat.channel)
        if not chat.record.title and runs:
            await self._chats.change(chat, title=title_of(runs[0].text) or "Loaded chat")
        if (wanted := str(snapshot.config.model)) != chat.record.model:
            words += f" {wanted} is not offered here, so {chat.record.model} answers."
        if bounded:
            words += f" What was set beyond what can be set here was brought to it: {bounded}."
        if runs:
            # Where it was loaded is part of the record.
            *told, result = runs[-1].bodies
            runs[-1] = replace(runs[-1], bodies=(*told, Note(words), result))
        # A file may name any time, also one that no clock here shows.
        await self._turns.retell(chat, runs, min(max(snapshot.updated_at, 0.0), self._now()))


def _retold(
    messages: Sequence[Message], new_id: Callable[[], str]
) -> tuple[list[RetoldRun], dict[str, str]]:
    runs = list(retold(messages, new_id))
    return runs, renamed_ids(messages, runs)


def _brought(snapshot: Snapshot) -> str:
    return json_text(
        {
            "learned_limits": snapshot.learned_limits,
            "metadata": snapshot.metadata,
            "extensions": snapshot.extensions,
            "extra": snapshot.config.extra,
        }
    )


def _learned(limits: LearnedLimits, model: ModelName, brought: JsonObject) -> JsonObject:
    """What was learned of one model: others' chats are nobody's business. What a file brought is
    only kept for it: it could say anything, and this server's limits are those of everybody."""
    own = {name: value for name, value in limits.as_json().items() if name == str(model)}
    return {**brought, **own}
