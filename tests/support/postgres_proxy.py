"""A way to a PostgreSQL server that can be cut: before, or after, the server sees a commit."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import parse_qs, urlsplit

Cut = Literal["no", "before commit", "after commit", "silent", "gone", "odd"]


class PostgresProxy:
    """Listens on a port for a server that listens on a socket in a folder.

    `cut` counts once: the connections are ended where it says; `silent` drops what the server
    says from then on, until `mend`, and `gone` what either says. With `odd` the next answer of the
    server, once, is one that its driver did not foresee.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._socket = Path(parse_qs(parts.query)["host"][0]) / ".s.PGSQL.5432"
        self._database = parts.path
        self._writers: list[asyncio.StreamWriter] = []
        self._swallow = False
        self.cut: Cut = "no"
        self.cuts = 0
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"postgresql://postgres@127.0.0.1:{port}{self._database}?sslmode=disable"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        self.end_all()

    def end_all(self) -> None:
        """Ends every connection; new ones can be made."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def mend(self) -> None:
        self.cut = "no"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(str(self._socket))
        self._writers += [writer, server_writer]
        with contextlib.suppress(OSError):
            await asyncio.gather(self._up(reader, server_writer), self._down(server_reader, writer))

    async def _up(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if b"COMMIT" in data and self.cut in ("before commit", "after commit"):
                after, self.cut = self.cut == "after commit", "no"
                self.cuts += 1
                if not after:
                    self.end_all()
                    return
                # It commits, and what it says then is heard by nobody.
                self._swallow = True
            if self.cut == "gone":
                continue
            server.write(data)
            await server.drain()
        server.close()

    async def _down(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self._swallow:
                self._swallow = False
                self.end_all()
                return
            if self.cut == "odd":
                # That it is ready, before it has let anybody in.
                data, self.cut = b"Z\0\0\0\5I", "no"
                self.cuts += 1
            if self.cut in ("silent", "gone"):
                self.cuts += 1
                continue
            client.write(data)
            await client.drain()
        client.close()
