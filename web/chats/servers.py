"""The MCP servers of all chats, and those of the host that every chat has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from web.chats.chat import Chat
from web.chats.chat_servers import ChatServers
from web.chats.tasks import TaskOwner
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections, Ways
from web.harness.mcp.spec import ServerSpec
from web.harness.tools.tool import Tool
from web.harness.values.errors import ConfigurationError


class Servers:
    """Owns every connection. `start` and `aclose` are called within the life of `tasks`.

    `host` are the servers of the configuration, `demo` the one that comes with the product.
    `environ` is where servers get their PATH, proxies and the like from.
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
    ) -> None:
        self._tasks = tasks
        self._environ = environ
        self._new_id = new_id
        self._configured = [spec for spec in host if not spec.disabled]
        self._demo = demo
        self._max_per_chat = max_per_chat
        self._ways: Ways = {}
        self._host = self._connections()
        self._of_chats: dict[Chat, ChatServers] = {}

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
            connect_own=self._connections,
            max_servers=self._max_per_chat,
            new_id=self._new_id,
        )
        self._of_chats[chat] = servers
        chat.channel.refresh = servers.refresh

    def of(self, chat: Chat) -> ChatServers:
        return self._of_chats[chat]

    async def tools(self, chat: Chat) -> list[Tool]:
        """What the servers of a chat bring to its next run."""
        return await self._of_chats[chat].tools()

    @property
    def names(self) -> list[str]:
        """The servers that every chat has."""
        return [connection.spec.name for connection in self._host]

    @property
    def demo_name(self) -> str:
        """The demo server's name; '' where there is none to connect."""
        return self._demo.name if self._demo is not None else ""

    def connect_demo(self, chat: Chat) -> None:
        """Connects the demo server; a chat that has it is fine."""
        if self._demo is None:
            raise ConfigurationError("There is no demo server here.")
        servers = self.of(chat)
        if not servers.has(self._demo.name):
            servers.connect(self._demo)

    async def close(self, chat: Chat) -> None:
        """Ends what a chat was connected to; returns when no process of it is left."""
        servers = self._of_chats.pop(chat, None)
        if servers is not None:
            await servers.aclose()

    async def aclose(self) -> None:
        """Ends all connections."""
        for chat in list(self._of_chats):
            # Each only asks its own to leave here; they end side by side below.
            self.of(chat).leave()
        for chat in list(self._of_chats):
            await self.close(chat)
        await self._host.aclose()

    def _connections(self) -> Connections:
        return Connections(self._tasks.create_task, self._environ, ways=self._ways)

    def _notice(self, connection: Connection) -> None:
        for servers in self._of_chats.values():
            servers.notice(connection)
