"""The connections of one chat, or of the host: made, looked up, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from web.harness.mcp.backoff import Backoff
from web.harness.mcp.connection import Connection
from web.harness.mcp.sign_in import SignInSetup
from web.harness.mcp.spec import ServerSpec, Way
from web.harness.mcp.tokens import TokenStore
from web.harness.values.errors import ConfigurationError, NotFound

Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]
"""Starts a task that its owner ends with itself, such as a task group's `create_task`."""

Ways = dict[tuple[object, ...], Way]
"""How servers were reached, by what they are; may be shared by several `Connections`."""


class Connections:
    """Owns the task of each connection through `spawn`.

    `environ` is where servers get their PATH, proxies and the like from; nothing else of it
    reaches them. `roots` are folders that servers are told of when they ask; they are made then.
    `sign_in` says what they are signed in to with; by default the tokens end with this object.
    Servers connect side by side, and each costs only itself when it fails.
    """

    def __init__(
        self,
        spawn: Spawn,
        environ: Mapping[str, str],
        *,
        ways: Ways | None = None,
        backoff: Backoff | None = None,
        roots: Sequence[Path] = (),
        sign_in: SignInSetup | None = None,
    ) -> None:
        self._spawn = spawn
        self._environ = environ
        self._ways = {} if ways is None else ways
        self._backoff = backoff or Backoff()
        self._roots = tuple(roots)
        self._sign_in = sign_in or SignInSetup(TokenStore())
        self._held: dict[str, Connection] = {}
        self._tasks: dict[Connection, asyncio.Task[None]] = {}
        self._closed = False

    def connect(self, spec: ServerSpec) -> Connection:
        """Begins to connect and returns at once; `Connection.ready` waits.

        Raises ConfigurationError for a name that is taken, RuntimeError after `aclose`.
        """
        if self._closed:
            raise RuntimeError("These connections are closed.")
        if spec.name in self._held:
            raise ConfigurationError(f"There is a server named '{spec.name}' already.")
        way = self._ways.setdefault((spec.kind, spec.command, spec.args, spec.url), Way())
        connection = Connection(spec, self._environ, way, self._backoff, self._roots, self._sign_in)
        self._held[spec.name] = connection
        task = self._spawn(connection.run())
        self._tasks[connection] = task
        task.add_done_callback(lambda _: self._tasks.pop(connection, None))
        return connection

    def get(self, name: str) -> Connection:
        """The connection of that name. Raises NotFound."""
        connection = self._held.get(name)
        if connection is None:
            raise NotFound(f"There is no MCP server named '{name}' here.")
        return connection

    async def disconnect(self, name: str) -> None:
        """Ends one connection; returns when nothing of it is left. Raises NotFound.

        Its name is free at once. The work goes on if the caller is cancelled. A stubborn process
        takes some four seconds, so a request should not wait for this.
        """
        connection = self.get(name)
        del self._held[name]
        await self._ended([connection])

    async def aclose(self) -> None:
        """Ends all connections side by side; returns when nothing of them is left."""
        self._closed = True
        self._held.clear()
        await self._ended(list(self._tasks))

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    async def _ended(self, connections: list[Connection]) -> None:
        for connection in connections:
            connection.leave()
        tasks = [self._tasks[each] for each in connections if each in self._tasks]
        if tasks:
            # Unlike `gather`, this leaves the tasks alone when the caller is cancelled.
            await asyncio.wait(tasks)


@asynccontextmanager
async def live_connections(
    environ: Mapping[str, str],
    *,
    ways: Ways | None = None,
    backoff: Backoff | None = None,
    roots: Sequence[Path] = (),
    sign_in: SignInSetup | None = None,
) -> AsyncIterator[Connections]:
    """Connections for as long as a block lasts, for whoever has no owner of tasks."""
    async with asyncio.TaskGroup() as group:
        connections = Connections(
            group.create_task, environ, ways=ways, backoff=backoff, roots=roots, sign_in=sign_in
        )
        try:
            yield connections
        finally:
            await connections.aclose()
