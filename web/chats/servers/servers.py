"""The MCP servers of all chats, and those of the host that every chat has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import is_not
from pathlib import Path

from web.chats.chat import Chat
from web.chats.parts.channel import Channel
from web.chats.parts.command_list import CommandList
from web.chats.runs.equipment import Connected
from web.chats.servers.chat_servers import ChatServers
from web.chats.servers.kept_servers import connect_again, kept_servers
from web.chats.servers.offers import prompt_commands, ref_of
from web.chats.servers.sampling import ChatSampler
from web.chats.tasks import TaskOwner
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections, Ways
from web.harness.mcp.sign_in import SignInSetup
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.tokens import TokenStore
from web.harness.resources import ResourcePool
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.tools.resource import Resource
from web.harness.values.config import ModelName
from web.harness.values.errors import ConfigurationError, NotFound, SessionConflict
from web.harness.values.messages import JsonObject
from web.harness.values.model import Provider

OWN, SHARED = "mcp", "mcp of the host"
"""The ids of a chat's own connections and of those that all chats share, among its resources."""


class Servers:
    """Owns every connection. `start` and `aclose` are called within the life of `tasks`.

    `host` are the servers of the configuration, `demo` the one that comes with the product.
    `environ` is where servers get their PATH, proxies and the like from. `providers` answer what
    servers ask of a chat's model, `folder` is where a chat keeps its files: both only if given.
    `tokens` are of the servers that were signed in to, `client_metadata_url` is where this program
    describes itself to those who sign people in ('' for nowhere). `resources` holds the connections
    of a chat for its session, under the id `OWN`, and stays the caller's.
    """

    def __init__(
        self,
        tasks: TaskOwner,
        environ: Mapping[str, str],
        *,
        new_id: Callable[[], str],
        host: Sequence[ServerSpec] = (),
        demo: ServerSpec | None = None,
        max_per_chat: int = 20,
        providers: Callable[[ModelName], Provider] | None = None,
        folder: Callable[[Chat], Path] | None = None,
        tokens: TokenStore | None = None,
        client_metadata_url: str = "",
        resources: ResourcePool | None = None,
    ) -> None:
        self._tasks = tasks
        self._environ = environ
        self._new_id = new_id
        self._configured = [spec for spec in host if not spec.disabled]
        self._demo = demo
        self._max_per_chat = max_per_chat
        self._providers = providers
        self._folder = folder
        self._tokens = tokens or TokenStore()
        self.client_metadata_url = client_metadata_url
        self._resources = resources if resources is not None else ResourcePool()
        self._ways: Ways = {}
        self._host = self._connections()
        self._of_chats: dict[Chat, ChatServers] = {}
        self._side_bars: list[Channel] = []
        self._kept: dict[Chat, tuple[object, tuple[JsonObject, ...]]] = {}
        self._closing = False

    def start(self) -> None:
        """Begins to connect the servers of the configuration; nobody waits for them."""
        for spec in self._configured:
            self._host.connect(spec).watch(self._notice)

    def add(self, chat: Chat) -> None:
        """Gives a new chat its servers."""
        servers = ChatServers(
            chat,
            tasks=self._tasks,
            host=self._host,
            connect_own=lambda: self._own(chat),
            max_servers=self._max_per_chat,
            new_id=self._new_id,
            sample=ChatSampler(chat, self._providers) if self._providers is not None else None,
        )
        self._of_chats[chat] = servers
        chat.channel.refreshers.append(servers.refresh)

    def offer(self, side_bar: Channel, commands: CommandList) -> None:
        """Has the message box of a chat that is not begun yet offer the prompts of the servers that
        every chat has, as commands `host-prompt`."""
        shown: list[object] = []

        def refresh() -> None:
            hosts = {ref_of(each.spec.name): each for each in self._host}
            found = [each.status.prompts for each in hosts.values()]
            if len(found) != len(shown) or any(map(is_not, found, shown)):
                shown[:] = found
                commands.put("prompt", *prompt_commands("host-prompt", hosts))

        side_bar.refreshers.append(refresh)
        self._side_bars.append(side_bar)

    def host_name(self, ref: str) -> str:
        """The server that every chat has, by what stands for its name. Raises NotFound."""
        for connection in self._host:
            if ref_of(connection.spec.name) == ref:
                return connection.spec.name
        raise NotFound("There is no such command any more.")

    def of(self, chat: Chat) -> ChatServers:
        return self._of_chats[chat]

    def awaiting(self, identity: HarnessIdentity, state: str) -> Connection | None:
        """The connection whose sign-in came back, or has come back before, with this `state`."""
        # The host's are signed in to by the person at this machine, for everybody.
        connections = list(self._host) if identity == LOCAL_IDENTITY else []
        for chat, servers in self._of_chats.items():
            if chat.identity == identity:
                connections += servers.connections()
        return next((each for each in connections if each.access.knows(state)), None)

    async def connected(self, chat: Chat) -> Connected:
        """What the servers of a chat bring to a model call."""
        servers = self._of_chats[chat]
        # While it waits for them nobody else may close them.
        async with self._resources.lease(chat.identity, chat.id) as lease:
            await lease.resource(SHARED, "host", self._lent)
            return Connected(await servers.tools(), servers.instructions())

    @property
    def names(self) -> list[str]:
        """The servers that every chat has."""
        return [connection.spec.name for connection in self._host]

    @property
    def demo_name(self) -> str:
        """The demo server's name; '' where there is none to connect."""
        return self._demo.name if self._demo is not None else ""

    def kept(self, chat: Chat) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]] | None:
        """The chat's own as they are kept, without secrets, as they were here and as they are; None
        where nothing changed."""
        servers = self._of_chats.get(chat)
        if servers is None or self._closing:
            return None
        state = (servers.news, tuple(chat.grants))
        known, before = self._kept.get(chat, (None, ()))
        if known == state:
            return None
        now = kept_servers(chat, servers, self._demo)
        self._kept[chat] = (state, now)
        return before, now

    def connect_again(self, chat: Chat) -> None:
        """Connects the servers of a chat that was loaded, as its record has them."""
        entries = chat.record.servers
        self._kept[chat] = (None, entries)
        connect_again(chat, self.of(chat), entries, self._demo, self._new_id)

    def connect_demo(self, chat: Chat) -> None:
        """Connects the demo server; a chat that has it is fine."""
        if self._demo is None:
            raise ConfigurationError("There is no demo server here.")
        servers = self.of(chat)
        if not servers.has(self._demo.name):
            servers.connect(self._demo)

    def holds(self, chat: Chat) -> bool:
        """Whether a chat has a connection of its own, or one waits for its person."""
        servers = self._of_chats.get(chat)
        return servers is not None and bool(servers.own_specs() or servers.proposed())

    async def close(self, chat: Chat) -> None:
        """Ends what a chat was connected to; returns when no process of it is left."""
        servers = self._of_chats.pop(chat, None)
        self._kept.pop(chat, None)
        if servers is None:
            return
        servers.leave()
        # While a run goes on, as when the server ends, they are ended under it.
        with suppress(SessionConflict):
            await self._resources.close_session(chat.identity, chat.id)
        await servers.aclose()

    async def _lent(self) -> Resource[Connections]:
        return Resource(self._host, "host")

    def _own(self, chat: Chat) -> Connections:
        made = self._connections(chat)
        held = Resource(made, dispose=made.aclose)
        self._resources.hold(chat.identity, chat.id, OWN, held)
        return made

    async def aclose(self) -> None:
        """Ends all connections."""
        self._closing = True
        for chat in list(self._of_chats):
            # Each only asks its own to leave here; they end side by side below.
            self.of(chat).leave()
        for chat in list(self._of_chats):
            await self.close(chat)
        await self._host.aclose()

    def _connections(self, chat: Chat | None = None) -> Connections:
        """Those of a chat, whose servers may know of its folder, or of the host."""
        roots = [self._folder(chat)] if chat is not None and self._folder is not None else []
        # What one person signed in to is open to nobody else; the host's servers are for all.
        whose = [chat.identity.tenant_id, chat.identity.user_id] if chat is not None else []
        setup = SignInSetup(
            self._tokens, owner=json.dumps(whose), client_metadata_url=self.client_metadata_url
        )
        return Connections(
            self._tasks.create_task, self._environ, ways=self._ways, roots=roots, sign_in=setup
        )

    def _notice(self, connection: Connection) -> None:
        for servers in self._of_chats.values():
            servers.notice(connection)
        for side_bar in self._side_bars:
            side_bar.touch()
