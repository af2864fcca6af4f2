"""`Chats`: every chat of this server, by whose it is; what the pages and the API call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from web.chats.chat import REMEMBERED_REQUESTS, Chat, Turn
from web.chats.files.folders import ChatFolders
from web.chats.memories.memories import ChatMemories
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.command_list import CommandList
from web.chats.parts.kinds import Row
from web.chats.records.chat_limits import ChatLimits, check_request_id, request_of_retry
from web.chats.records.records import ChatRecord, ChatRecords
from web.chats.records.titles import (
    checked_prompt,
    checked_title,
    title_of,
    title_of_attached,
)
from web.chats.registry.answering import Answering
from web.chats.registry.composing import Composing
from web.chats.registry.shown_settings import shown_settings
from web.chats.registry.undos import Undos
from web.chats.registry.unloading import Unloading
from web.chats.runs.equipment import Equipment
from web.chats.runs.turns import Turns, no_such_run
from web.chats.servers.servers import Servers
from web.chats.setup import Setup
from web.chats.skills.skills import ChatSkills
from web.chats.storage.loading import Kept
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.store import SessionStore
from web.harness.values.config import ModelName
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound, StoreError
from web.harness.values.messages import AttachedBlock

SIDE_BAR = "chats"
"""The channel of the side bar; no chat has this id."""


class Chats(Unloading, Composing, Answering):
    """The chats of all identities. Another identity's chat is as if it were not there.

    `new_id` returns an id nobody can guess; `now` seconds since the epoch. `skills` are those of
    all chats, `servers` the MCP servers they connect; without, they do so with an empty
    environment. Without `memories` nothing outlives a chat; without `kept` no chat outlives the
    process.
    """

    def __init__(
        self,
        *,
        tasks: TaskOwner,
        turns: Turns,
        sessions: SessionStore,
        records: ChatRecords,
        clock: Clock,
        models: tuple[ModelName, ...],
        limits: ChatLimits,
        now: Callable[[], float],
        new_id: Callable[[], str],
        skills: ChatSkills,
        files: ChatFolders,
        servers: Servers | None = None,
        memories: ChatMemories | None = None,
        kept: Kept | None = None,
    ) -> None:
        super().__init__()
        self.kept = kept
        self.clock = clock
        self.servers = servers or Servers(tasks, {}, new_id=new_id)
        self.skills = skills
        self.memories = memories or ChatMemories(tasks, None)
        self.files = files
        self.models = tuple(str(model) for model in models)
        self._tasks = tasks
        self._turns = turns
        self._sessions = sessions
        self._records = records
        self.limits = limits
        self._now = now
        self._new_id = new_id
        self.undos = Undos(tasks, self.side_bar, now, limits.undo_seconds)
        self._chats: dict[tuple[HarnessIdentity, str], Chat] = {}
        self._side_bars: dict[HarnessIdentity, Channel] = {}
        self._made: OrderedDict[tuple[HarnessIdentity, str], str] = OrderedDict()

    async def create(
        self,
        identity: HarnessIdentity,
        *,
        title: str = "",
        model: str = "",
        system_prompt: str = "",
        request_id: str = "",
    ) -> Chat:
        """A new chat; the same request id again gives the chat it made."""
        made_id = self._made.get((identity, request_id), "") if request_id else ""
        made = self._chats.get((identity, made_id))
        if made is not None and not made.is_deleted:
            return made
        await self.unload(self.limits.max_chats - 1)
        if len(self._chats) >= self.limits.max_chats:
            raise LimitExceeded(
                f"This server holds {len(self._chats):,} chats, its limit.",
                hint="Delete some that are no longer needed.",
            )
        model = self._offered(model or self.models[0])
        title = checked_title(title, self.limits.max_title_chars)
        prompt = checked_prompt(system_prompt, self.limits.max_draft_chars)
        now = self._now()
        memory = self.memories.new_chats_use_it
        record = ChatRecord(self._new_id(), model, now, now, title, prompt, memory=memory)
        if request_id and self.kept is not None:
            chat = await self._made_once(self.kept, identity, request_id, record)
        else:
            chat = await self._enter(identity, record)
        if request_id:
            self._made[identity, request_id] = chat.id
            while len(self._made) > REMEMBERED_REQUESTS:
                self._made.popitem(last=False)
        return chat

    def _add(self, chat: Chat) -> None:
        """Gives a chat that is new in memory what its person has."""
        chat.transcript.state_changed = lambda: self.show(chat)
        self.servers.add(chat)
        self.skills.add(chat)
        self.memories.add(chat)
        if self.kept is not None:
            chat.channel.refreshers.append(lambda: self._keep_servers(chat))
            self.servers.of(chat).changed = lambda: self._keep_servers_soon(chat)

    def get(self, identity: HarnessIdentity, chat_id: str) -> Chat:
        """Raises NotFound; also for a chat that is deleted."""
        chat = self._chats.get((identity, chat_id))
        if chat is None or chat.is_deleted:
            raise NotFound(
                "There is no such chat here.",
                hint="Chats are kept in this server's memory: a restart or a deletion ends them."
                if self.kept is None
                else "It was deleted, or never was.",
            )
        return chat

    def list(self, identity: HarnessIdentity) -> list[Chat]:
        """Living chats, the one with the newest message first."""
        mine = [
            chat
            for (owner, _), chat in self._chats.items()
            if owner == identity and not chat.is_deleted
        ]
        return sorted(mine, key=lambda chat: chat.record.order, reverse=True)

    def side_bar(self, identity: HarnessIdentity) -> Channel:
        if identity not in self._side_bars:
            side_bar = self._side_bars[identity] = Channel(SIDE_BAR, self.clock)
            # What a chat that is not begun yet has to offer lies there too.
            commands = CommandList(side_bar, "new-command-list", "new-commands")
            self.skills.offer(identity, side_bar, commands)
            self.servers.offer(side_bar, commands)
        return self._side_bars[identity]

    def channel(self, identity: HarnessIdentity, name: str) -> Channel | None:
        """A channel by the name a reader asks for. A deleted chat's says that it is gone."""
        if name == SIDE_BAR:
            return self.side_bar(identity)
        chat = self._chats.get((identity, name))
        return chat.channel if chat is not None else None

    def run(self, identity: HarnessIdentity, run_id: str) -> Chat:
        """The chat of a run. Raises NotFound."""
        chat = self._turns.chat_of(run_id)
        if chat.identity != identity:
            raise no_such_run()
        return self.get(identity, chat.id)

    async def send(
        self,
        chat: Chat,
        text: str,
        *,
        request_id: str = "",
        queue: bool,
        model: str = "",
        attached: bool = False,
        attachments: Sequence[AttachedBlock] = (),
        draft: str = "",
    ) -> Turn:
        """Sends a message; see `Turns.send`. A model given here is the chat's from now on.

        Returns when it is stored; where it could not be, it was not sent (StoreError).
        It takes `attachments` along, or with `attached` what a person has attached to the chat's
        next message, and the skill that it calls by its name. `draft` is what the message was kept
        as while it was written: the chat's draft is none any more if it is that, or the text.
        """
        # A message that is refused changes nothing, the model neither.
        model = self._offered(model or chat.record.model)
        check_request_id(request_id)
        called = await self.skills.called(chat, text)
        if not queue:
            await self._turns.settle(chat)
        pending = chat.pending if attached else ()
        blocks = tuple(each.block for each in pending) if attached else tuple(attachments)
        blocks += tuple(each for each in called if each not in blocks)
        self.limits.attachments.check(blocks)
        turn = Turn(
            self._run_id(chat),
            text,
            model,
            request_id or self._new_id(),
            blocks,
            tuple(each.id for each in pending),
            draft if len(draft) <= self.limits.max_draft_chars else "",
            self._now(),
        )
        stands = self._turns.send(chat, turn, queue=queue)
        if stands is turn:
            # At once: what is sent or attached while this is written is another message's.
            chat.record = replace(chat.record, attachments=chat.pending)
            chat.show_attachments()
            chat.keep_pictures(attachments)
            await chat.blobs.flush()
            try:
                stands = await self._turns.keep(chat, turn)
            except StoreError:
                taken = (*pending, *chat.record.attachments)
                chat.record = replace(chat.record, attachments=taken)
                chat.show_attachments()
                raise
            if stands is turn:
                await self._sent(chat, turn)
            return stands
        return await self._turns.kept(stands)

    @property
    def equipment(self) -> Equipment:
        return self._turns.equipment

    @property
    def max_message_chars(self) -> int:
        return self._turns.max_message_chars

    def running(self, identity: HarnessIdentity) -> int:
        """How many answers are being written for one person."""
        return self._turns.running_of(identity)

    def check(self, text: str, *, attached: bool = False) -> None:
        """Raises what `send` would raise for this text, with something attached or without."""
        self._turns.check(text, attached=attached)

    async def retry(self, chat: Chat, run_id: str) -> Turn:
        """Sends the last message, whose run failed or was stopped, once more."""
        await self._turns.settle(chat)
        failed = chat.failed
        text, blocks = (failed.text, failed.attachments) if failed is not None else ("", ())
        turn = Turn(self._run_id(chat), text, chat.record.model, request_of_retry(run_id), blocks)
        stands = self._turns.retry(chat, run_id, turn)
        return await (self._turns.keep(chat, turn) if stands is turn else self._turns.kept(stands))

    def stop(self, chat: Chat, run_id: str) -> None:
        self._turns.stop(chat, run_id)

    async def change(
        self,
        chat: Chat,
        *,
        title: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
        setup: Setup | None = None,
        switched_as: ChatRecord | None = None,
    ) -> None:
        """Renames a chat, or has its next turn go by another model, prompt, limits or switches."""
        record = chat.record if switched_as is None else chat.record.switched_as(switched_as)
        if system_prompt is not None:
            prompt = checked_prompt(system_prompt, self.limits.max_draft_chars)
            record = replace(record, system_prompt=prompt)
        if setup is not None:
            record = replace(record, setup=setup)
        if title is not None:
            record = replace(record, title=checked_title(title, self.limits.max_title_chars))
        if model is not None:
            record = replace(record, model=self._offered(model))
        await self._change(chat, record)

    async def switch_tool(self, chat: Chat, tool: str, *, on: bool) -> None:
        """Offers a tool of a chat's MCP servers to models, from the next run on, or does not."""
        if not on and not self.servers.of(chat).knows(tool):
            raise NotFound("There is no such tool in this chat.", hint="Nothing was changed.")
        off = {*chat.record.tools_off} - {tool} if on else {*chat.record.tools_off, tool}
        await self._write(chat, replace(chat.record, tools_off=tuple(sorted(off))))
        chat.channel.touch()

    async def switch_skill(self, chat: Chat, skill: str, *, on: bool) -> None:
        """Lets a chat use a skill, from the next model call on, or does not."""
        off = {*chat.record.skills_off} - {skill} if on else {*chat.record.skills_off, skill}
        await self._write(chat, replace(chat.record, skills_off=tuple(sorted(off))))
        chat.channel.touch()

    async def switch_memory(self, chat: Chat, *, on: bool) -> None:
        """Lets a chat use what is remembered, from the next model call on, or does not."""
        self.memories.shelf(chat.identity)
        await self._write(chat, replace(chat.record, memory=on))
        chat.channel.touch()

    def show(self, chat: Chat) -> None:
        """Brings head and side bar up to what the chat is now."""
        if chat.is_deleted:
            return
        self._keep_grants(chat)
        chat.show_head()
        chat.show_queue()
        equipment = self._turns.equipment
        settings = shown_settings(chat.record, chat.title, self.models, equipment)
        chat.channel.put("chat-settings", "settings", settings)
        row = Row(chat.id, chat.title, chat.state, chat.record.order)
        self.side_bar(chat.identity).put(f"r-{chat.id}", "chats", row, rank=-chat.record.order)

    async def _sent(self, chat: Chat, turn: Turn) -> None:
        record = turn.without_draft(chat.record)
        record = replace(record, order=self._now(), model=turn.model)
        if not record.title:
            title = title_of(turn.text) or title_of_attached(turn.attachments)
            record = replace(record, title=title)
        await self._write(chat, record)

    async def _write(self, chat: Chat, record: ChatRecord) -> None:
        chat.record = record
        self.show(chat)
        await self._records.put(chat.identity, chat.record)

    async def _store(self, chat: Chat, record: ChatRecord) -> None:
        """The same, and raises StoreError where it is not stored yet."""
        chat.record = record
        self.show(chat)
        store = self._records.put if self.kept is None else self.kept.records.store
        await store(chat.identity, chat.record)

    def _offered(self, model: str) -> str:
        if model not in self.models:
            raise ConfigurationError(
                f"The model '{model[:80]}' is not offered here.",
                hint=f"Choose one of {', '.join(self.models)}.",
            )
        return model
