"""What chats remember beyond themselves: the tools of a chat, what its model is told, and the list
on its page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from web.chats.chat import Chat
from web.chats.memories.memory_shelf import Deleted, MemoryShelf
from web.chats.parts.memory_kinds import MemoryState
from web.chats.runs.equipment import Connected
from web.chats.tasks import TaskOwner
from web.harness.builtin.memory_tools import memory_instructions, memory_tools
from web.harness.memory.prompt import memory_prompt
from web.harness.sessions.identity import HarnessIdentity
from web.harness.skills.library import identity_folder
from web.harness.tools.tool import Tool, ToolContext, ToolOutput
from web.harness.values.errors import NotFound
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Between looks at the disk while somebody watches: no page is older than that."""

OPEN_SECONDS = 0.5
"""So long a page waits for its list of memories before it opens without."""

KEPT_DELETED = 20
"""Of one person, to be brought back."""


@dataclass(slots=True)
class _Held:
    """Of one chat: what its page shows, and the rows of that."""

    shown: tuple[int, bool] = (-1, False)
    rows: set[str] = field(default_factory=set)


class ChatMemories:
    """The memories of all people, each in a folder of their own below `root`.

    Without a root there are none, and chats have no such tools. `on` says whether new chats use
    them. What was deleted can be brought back for `undo_seconds`, and is gone from memory and disk
    then. A page that is open is brought up to the disk every `look_seconds`.
    """

    def __init__(
        self,
        tasks: TaskOwner,
        root: Path | None,
        *,
        on: bool = True,
        undo_seconds: float = 10.0,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._tasks = tasks
        self._root = root
        self._on = on
        self._undo_seconds = undo_seconds
        self._look_seconds = look_seconds
        self._shelves: dict[HarnessIdentity, MemoryShelf] = {}
        self._tools: dict[HarnessIdentity, list[Tool]] = {}
        self._chats: dict[Chat, _Held] = {}
        self._deleted: dict[HarnessIdentity, dict[str, Deleted]] = {}
        # What a new chat would have is only ever shown.
        self._nobodys = [] if root is None else _tools_of(MemoryShelf(root))

    @property
    def new_chats_use_it(self) -> bool:
        return self._root is not None and self._on

    @property
    def are_there(self) -> bool:
        """Whether this server remembers anything beyond a chat."""
        return self._root is not None

    def start(self) -> None:
        """Begins to look at the disk for those who watch; `tasks` ends it."""
        if self._root is not None:
            self._tasks.create_task(self._keep_looking())

    def add(self, chat: Chat) -> None:
        """Gives a new chat what its person has."""
        if self._root is None:
            return
        self._chats[chat] = _Held()
        chat.channel.refreshers.append(lambda: self._refresh(chat))

    def shelf(self, identity: HarnessIdentity) -> MemoryShelf:
        """The memories of one person. Raises NotFound where there are none."""
        if self._root is None:
            raise NotFound(
                "This server remembers nothing beyond a chat.", hint="Nothing was changed."
            )
        shelf = self._shelves.get(identity)
        if shelf is None:
            folder = self._root / identity_folder(identity.tenant_id, identity.user_id)
            shelf = self._shelves[identity] = MemoryShelf(folder)
        return shelf

    async def look(self, identity: HarnessIdentity) -> MemoryShelf:
        """The same after a look at the disk; pages that show something else follow."""
        shelf = self.shelf(identity)
        if await shelf.look():
            for chat in self._chats:
                if chat.identity == identity:
                    chat.channel.touch()
        return shelf

    async def show(self, chat: Chat) -> None:
        """Brings the page of a chat that opens up to the disk. Where very many are read for the
        first time it does not wait for them: they come by themselves."""
        if self._root is not None:
            looking = self._tasks.create_task(self._look_for(chat))
            await asyncio.wait({looking}, timeout=OPEN_SECONDS)

    async def _look_for(self, chat: Chat) -> None:
        await self.look(chat.identity)

    def tools(self, chat: Chat | None) -> list[Tool]:
        """The tools of a chat while it uses what is remembered; None stands for a new chat."""
        if chat is not None:
            there = chat in self._chats and chat.record.memory
            return self._tools_of(chat.identity) if there else []
        return self._nobodys if self.new_chats_use_it else []

    async def connected(self, chat: Chat) -> Connected:
        """What memories bring to a model call; nothing where they are switched off."""
        tools = self.tools(chat)
        if not tools:
            return Connected()
        shelf = self.shelf(chat.identity)
        prompt = partial(memory_prompt, long_term=shelf.facts, agent_memory=shelf.notes)
        return Connected(tools, await memory_instructions(prompt))

    def keep_deleted(self, identity: HarnessIdentity, ref: str, deleted: Deleted) -> None:
        """Keeps what brings a memory back, for as long as that is offered."""
        kept = self._deleted.setdefault(identity, {})
        kept[ref] = deleted
        while len(kept) > KEPT_DELETED:
            del kept[next(iter(kept))]
        self._tasks.create_task(self._forget_later(identity, ref, deleted))

    def take_deleted(self, identity: HarnessIdentity, ref: str) -> Deleted:
        """What brings a memory back. Raises NotFound when it is too late."""
        deleted = self._deleted.get(identity, {}).pop(ref, None)
        if deleted is None:
            raise NotFound(
                "This memory cannot be brought back any more.", hint="It was forgotten for good."
            )
        return deleted

    def close(self, chat: Chat) -> None:
        """Forgets a chat; what its person has stays."""
        self._chats.pop(chat, None)

    def _tools_of(self, identity: HarnessIdentity) -> list[Tool]:
        """All chats of a person share them."""
        tools = self._tools.get(identity)
        if tools is None:
            made = _tools_of(self.shelf(identity))
            tools = [_telling(tool, lambda: self.look(identity)) for tool in made]
            self._tools[identity] = tools
        return tools

    def _refresh(self, chat: Chat) -> None:
        """Brings the parts of a chat up to the last look."""
        held = self._chats.get(chat)
        if held is None:
            return
        shelf, on = self.shelf(chat.identity), chat.record.memory
        if held.shown == (shelf.version, on):
            return
        held.shown = (shelf.version, on)
        listing = shelf.listing
        rows = {f"me-{each.ref}": each for each in listing.memories}
        for id in held.rows - rows.keys():
            chat.channel.remove(id)
        held.rows = set(rows)
        for id, each in rows.items():
            chat.channel.put(id, "memories", each, rank=-each.updated)
        state = MemoryState(
            on, listing.facts, listing.notes, len(rows), listing.faults, not shelf.version
        )
        chat.channel.put("memory-is", "memory-state", state)

    async def _forget_later(self, identity: HarnessIdentity, ref: str, deleted: Deleted) -> None:
        await asyncio.sleep(self._undo_seconds)
        kept = self._deleted.get(identity, {})
        if kept.get(ref) is deleted:
            del kept[ref]

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            watched = {chat.identity for chat in self._chats if chat.channel.is_watched}
            for identity in watched:
                try:
                    await self.look(identity)
                except Exception:
                    # What one person has on disk stops nobody else's pages.
                    log.warning("A look at what is remembered failed.", exc_info=True)


def _tools_of(shelf: MemoryShelf) -> list[Tool]:
    return memory_tools(long_term=shelf.facts, agent_memory=shelf.notes)


def _telling(tool: Tool, look: Callable[[], Awaitable[object]]) -> Tool:
    """The tool, after whose calls pages show what it saved."""

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            return await tool.handler(arguments, context)
        finally:
            await look()

    return replace(tool, handler=handle)
