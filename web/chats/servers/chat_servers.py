"""The MCP servers of one chat: those of the host and its own, their tools, and what is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from web.chats.chat import Chat
from web.chats.parts.kinds import Proposal, Server, ServerTool, ServerTools
from web.chats.servers.held_servers import Held
from web.chats.servers.instructions import instructions_of
from web.chats.servers.offers import Offers
from web.chats.servers.shared_servers import check_changeable, check_startable, offered_to, shown_to
from web.chats.servers.shown_servers import attention, shown_server
from web.chats.servers.typed_servers import TypedServer, spec_of
from web.chats.tasks import TaskOwner
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.sampling import Sampler
from web.harness.mcp.spec import ServerSpec
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import Preview, Tool, ToolContext
from web.harness.values.errors import ConfigurationError, LimitExceeded, NotFound
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    # This brings the SDK's types and a schema checker: it is loaded with the first tool list.
    from web.harness.mcp.offered import OfferedTool

FIRST_CONNECT_SECONDS = 10.0
"""How long a run waits for servers that are being connected for the first time."""
SHOWN_TOOLS = 200
MAX_PROPOSALS = 5

CHANGED = (
    "The server has changed this tool since you allowed it for this chat, so it asks again. "
    "Read its description before you allow it."
)


class ChatServers:
    """What one chat is connected to.

    `host` are the connections that all chats share, `connect_own` makes room for the chat's own
    when there is the first. `sample` has the chat's model answer its servers, if anything does.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        tasks: TaskOwner,
        host: Connections,
        connect_own: Callable[[], Connections],
        max_servers: int,
        new_id: Callable[[], str],
        sample: Sampler | None = None,
    ) -> None:
        self._chat = chat
        self._tasks = tasks
        self._host = host
        self._connect_own = connect_own
        self._max_servers = max_servers
        self._new_id = new_id
        self._sample = sample
        self._own: Connections | None = None
        self._held: dict[Connection, Held] = {}
        self._proposed: dict[str, ServerSpec] = {}
        self.needed: dict[str, str] = {}
        """Names of servers whose secrets are needed again, by what stands for each."""
        self.marks: dict[str, str] = {}
        """Of every tool that was offered, so that one a person allowed cannot become another."""
        self._altered: set[str] = set()
        """Tools that were allowed, and lost that because they changed."""
        self.offers = Offers(chat)
        """What they offer the person, beside tools."""
        self.changed: Callable[[], None] = lambda: None
        self._numbers = 0
        self._news = 0
        self._shown: object = None

    # What is connected.

    def connect(self, spec: ServerSpec) -> None:
        """Begins to connect; the page follows. Raises ConfigurationError or LimitExceeded."""
        self.checked(spec)
        if self._own is None:
            self._own = self._connect_own()
        self._own.connect(spec).watch(self.notice)
        self.touch()

    def typed(self, typed: TypedServer) -> ServerSpec:
        """What was typed, checked. Raises ConfigurationError or LimitExceeded."""
        return self.checked(spec_of(typed, self.names()))

    def checked(self, spec: ServerSpec) -> ServerSpec:
        """The same. Raises ConfigurationError or LimitExceeded where it could not be connected."""
        check_startable(self._chat, spec)
        self._check(spec.name)
        return spec

    def propose(self, spec: ServerSpec) -> str:
        """Shows a command to the person, who starts it or does not; returns the proposal's id.

        Raises LimitExceeded where too many wait. None makes room for another by itself: what a
        person is about to start must stay where it is.
        """
        if len(self._proposed) >= MAX_PROPOSALS:
            raise LimitExceeded(
                f"{MAX_PROPOSALS} commands wait to be started, the most of a chat.",
                hint="Start one of them on the page, or choose not to.",
            )
        id = self._new_id()
        self._proposed[id] = spec
        folder = spec.cwd or str(Path.cwd())
        shown = Proposal(id, spec.name, spec.command, spec.args, tuple(spec.env), folder)
        self._chat.channel.put(f"p-{id}", "proposals", shown)
        self.touch()
        return id

    def proposed(self) -> dict[str, ServerSpec]:
        """The commands that wait to be started, by the id of the proposal."""
        return dict(self._proposed)

    def accept(self, proposal_id: str) -> None:
        """Starts what was proposed. Raises NotFound, and what `connect` raises."""
        spec = self._proposed.get(proposal_id)
        if spec is None:
            raise NotFound("This command does not wait any more.", hint="Type it once more.")
        self.connect(spec)
        self.dismiss(proposal_id)

    def dismiss(self, proposal_id: str) -> None:
        """Forgets a proposal; an unknown one is fine."""
        self._proposed.pop(proposal_id, None)
        self.needed.pop(proposal_id, None)
        self._chat.channel.remove(f"p-{proposal_id}")
        self.touch()

    def connection(self, key: str) -> Connection:
        """Raises NotFound."""
        return self._by_key(key).connection

    def changeable(self, key: str) -> Connection:
        """The same for what is done to it for everybody who has it. Raises ConfigurationError."""
        held = self._by_key(key)
        check_changeable(self._chat, held.connection.spec.name, of_host=held.of_host)
        return held.connection

    def retry(self, key: str) -> None:
        """Connects now. Raises NotFound."""
        self._by_key(key).connection.retry()

    def disconnect(self, key: str) -> None:
        """Ends one of the chat's own; what was allowed of it is forgotten. Raises NotFound."""
        held = self._by_key(key)
        if held.of_host or self._own is None:
            raise ConfigurationError(
                f"'{held.connection.spec.name}' is connected for every chat.",
                hint="Switch its tools off, or take it out of the configuration file.",
            )
        for each in held.offered:
            self._chat.revoke(each.tool.name)
            self.marks.pop(each.tool.name, None)
        self._altered -= {each.tool.name for each in held.offered}
        self._drop(held)
        self._tasks.create_task(self._own.disconnect(held.connection.spec.name))
        # Its task has not begun: until it has, the connection would still be listed.
        held.connection.leave()

    def leave(self) -> None:
        """Has the chat's own connections end soon."""
        for connection in self._own or ():
            connection.leave()

    async def aclose(self) -> None:
        """Ends the chat's own connections; returns when nothing of them is left."""
        self._proposed.clear()
        if self._own is not None:
            await self._own.aclose()

    def has(self, name: str) -> bool:
        return name in self.names()

    def connections(self) -> list[Connection]:
        """The chat's own, and those of the host."""
        return [held.connection for held in self._all()]

    @property
    def news(self) -> int:
        """Rises with each change of what is connected, or shown of it."""
        return self._news

    def own_specs(self) -> list[ServerSpec]:
        return [held.connection.spec for held in self._all() if not held.of_host]

    def names(self) -> set[str]:
        return {held.connection.spec.name for held in self._all()}

    def key_of(self, name: str) -> str:
        """The key of a server by its name, once its offers are known. Raises NotFound."""
        self.refresh()
        for held in self._all():
            if held.connection.spec.name == name:
                return held.key
        raise NotFound("There is no such MCP server in this chat.")

    # Their tools.

    async def tools(self) -> list[Tool]:
        """The tools for one model call: of servers that are there, without those switched off."""
        await self._first_connects()
        await asyncio.gather(*(held.connection.settled() for held in self._all()))
        for held in self._all():
            await self._make(held)
        self._altered.difference_update(self._chat.grants)
        return [
            replace(each.tool, preview=self._preview(each.tool.name))
            for held in self._all()
            if held.is_usable
            for each in held.offered
            if each.tool.name not in self._chat.record.tools_off
        ]

    def instructions(self) -> str:
        """What its servers want a model to know, for the system prompt."""
        return instructions_of(
            (held.connection.spec.name, held.connection.status.instructions)
            for held in self._all()
            if held.is_usable
        )

    def knows(self, tool: str) -> bool:
        return any(each.tool.name == tool for held in self._all() for each in held.offered)

    async def _first_connects(self) -> None:
        """Waits a little for servers that a person has just connected."""
        new = []
        for held in self._all():
            status = held.connection.status
            if status.state == "connecting" and not status.tools and not held.waited:
                held.waited = True
                new.append(held.connection)
        if not new:
            return
        try:
            async with asyncio.timeout(FIRST_CONNECT_SECONDS):
                await asyncio.gather(*(each.ready() for each in new), return_exceptions=True)
        except TimeoutError:
            # The run goes without them; the page says that they are still connecting.
            return

    async def _make(self, held: Held) -> None:
        """Makes the tools anew if the server's list is another one. Long lists take a while."""
        async with held.making:
            if not held.is_stale:
                return
            source = held.connection.status.tools
            make = partial(offered_to, self._chat, held.connection, source, self._sample)
            made = await run_in_thread(make)
            if held.connection not in self._held:
                return
            self._compare(made)
            held.source, held.offered, held.made = source, made, True
        self.touch()

    def _compare(self, made: Iterable[OfferedTool]) -> None:
        """A tool that is not what a person allowed asks again, in a run under way too."""
        for each in made:
            name = each.tool.name
            before = self.marks.get(name, each.fingerprint)
            self.marks[name] = each.fingerprint
            if before != each.fingerprint and name in self._chat.grants:
                self._chat.revoke(name)
                self._altered.add(name)

    def _preview(self, name: str) -> Preview:
        async def preview(arguments: JsonObject, context: ToolContext) -> JsonObject | None:
            return {"kind": "note", "note": CHANGED} if name in self._altered else None

        return preview

    # What is shown.

    def touch(self) -> None:
        """Something changed: readers of the chat are told, and find it."""
        self._news += 1
        self._chat.channel.touch()
        self.changed()

    def notice(self, connection: Connection) -> None:
        """A connection changed. Its tools wait until somebody looks, unless one was allowed."""
        held = self._held.get(connection)
        if held is not None and held.is_stale and self._chat.grants:
            self._tasks.create_task(self._make(held))
        self.touch()

    def shown(self) -> list[tuple[Server, ServerTools | None]]:
        """Each server and its tools, as they are now; None where none are known."""
        self._make_stale()
        return [(self._shown_server(held), self._shown_tools(held)) for held in self._all()]

    def refresh(self) -> None:
        """Brings the parts up to what is now; called before the chat's channel is read."""
        state = (self._news, tuple(self._chat.grants), self._chat.record.tools_off)
        if state == self._shown:
            return
        self._shown = state
        self._make_stale()
        for held in self._all():
            self._put(held)
            self.offers.show(held.key, held.connection)
        self.offers.show_commands()
        self._show_attention()

    def _show_attention(self) -> None:
        shown = attention(self._proposed.values(), self.connections(), self.needed.values())
        if shown.waiting:
            self._chat.channel.put("attention-line", "attention", shown)
        else:
            self._chat.channel.remove("attention-line")

    def _make_stale(self) -> None:
        """Somebody looks, so the tools of changed lists are made."""
        for held in self._all():
            if held.is_stale and not held.making.locked():
                self._tasks.create_task(self._make(held))

    def _put(self, held: Held) -> None:
        channel = self._chat.channel
        channel.put(held.key, "servers", self._shown_server(held))
        tools = self._shown_tools(held)
        if tools is not None:
            channel.put(f"{held.key}-tools", held.key, tools, rank=0)
        else:
            channel.remove(f"{held.key}-tools")

    def _shown_server(self, held: Held) -> Server:
        waits = held.is_stale and not held.made
        shown = shown_server(held.key, held.connection, of_host=held.of_host, waits=waits)
        return shown_to(self._chat, shown)

    def _shown_tools(self, held: Held) -> ServerTools | None:
        if not held.offered:
            return None
        tools = tuple(self._shown_tool(each) for each in held.offered[:SHOWN_TOOLS])
        return ServerTools(held.connection.spec.name, tools, len(held.offered) - len(tools))

    def _shown_tool(self, offered: OfferedTool) -> ServerTool:
        name = offered.tool.name
        granted = name in self._chat.grants
        return ServerTool(
            name=name,
            title=offered.title,
            description=offered.tool.description,
            hints=offered.hints,
            on=name not in self._chat.record.tools_off,
            granted=granted,
            changed=name in self._altered and not granted,
        )

    # The list.

    def _all(self) -> list[Held]:
        """Every connection, the host's first."""
        for connections, of_host in ((self._host, True), (self._own, False)):
            for connection in connections or ():
                # One that leaves is on its way out of the list.
                if connection not in self._held and connection.status.state != "closed":
                    self._numbers += 1
                    key = f"s-{self._numbers}"
                    self._held[connection] = Held(key, connection, of_host)
        return list(self._held.values())

    def _drop(self, held: Held) -> None:
        del self._held[held.connection]
        self.offers.drop(held.key)
        self._chat.channel.remove(held.key)
        self.touch()

    def _by_key(self, key: str) -> Held:
        for held in self._all():
            if held.key == key:
                return held
        raise NotFound("There is no such MCP server in this chat.", hint="It was disconnected.")

    def _check(self, name: str) -> None:
        if name in self.names():
            raise ConfigurationError(
                f"There is a server named '{name}' already.", hint="Give this one another name."
            )
        if sum(not held.of_host for held in self._all()) >= self._max_servers:
            raise LimitExceeded(
                f"This chat is connected to {self._max_servers} servers, its limit.",
                hint="Disconnect one that is no longer needed.",
            )
