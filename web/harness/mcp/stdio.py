"""A server as a process of its own: its pipes, its lines, and its certain end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from web.harness.mcp.failures import Unreachable, spawn_failure
from web.harness.mcp.spec import ServerSpec
from web.harness.tools.processes import started
from web.harness.tools.strays import no_strays

LEAVE_SECONDS = 2.0
"""How long a server may take to end by itself once its input is closed."""
TERM_SECONDS = 2.0
"""How long its process group may take to end after SIGTERM, before it is killed."""
STRAY_SECONDS = 1.0
"""The same for what has left that group."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is not kept: no message is that long."""
KEPT_ENDS = 1000
"""Bytes that are kept of its start and of its end, to tell whose answer it was."""
MAX_WAITING_BYTES = 4 * 1024 * 1024
"""Output that waits for its reader; beyond it the server's pipe is left to fill."""

_END_PIECES = 16
"""As many pieces of a long line hold its start, or its end."""
_POLL_SECONDS = 0.01
_LAST_WORDS_SECONDS = 0.25
"""How long the output is still read after the process ended, where a child holds it open."""
_INHERITED = frozenset(
    {
        *("HOME", "LOGNAME", "USER", "PATH", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ"),
        *("TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "NODE_PATH", "DOCKER_HOST"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    }
)
_INHERITED_PREFIXES = ("LC_", "XDG_", "NPM_CONFIG_", "PIP_", "UV_")
_PRIVATE = ("TOKEN", "AUTH", "PASSWORD", "SECRET", "KEY")


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a server gets from us: where it is, and how it reaches the network.

    Keys of model providers and the like are not among them.
    """
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _INHERITED
        or (
            name.upper().startswith(_INHERITED_PREFIXES)
            and not any(word in name.upper() for word in _PRIVATE)
        )
    }


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line of more than `MAX_LINE_BYTES`: how it starts and ends."""

    length: int
    start: bytes
    end: bytes


class ServerProcess(asyncio.SubprocessProtocol):
    """One running server. Its lines come as bytes without the line end.

    It leads a process group of its own, so that all it has started can be ended with it.
    """

    def __init__(self, on_stderr: Callable[[str], None]):
        self.ended = asyncio.Event()
        self._on_stderr = on_stderr
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._arrived = asyncio.Event()
        self._output_open = True
        self._paused = False
        self._leaving = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._stderr = b""
        self._stderr_over = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def transport(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("The process has not been started.")
        return self._transport

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._take_stderr(data)
            return
        if self._leaving:
            return  # a server that is stuck in writing cannot see that its input has ended
        self._chunks.append(data)
        self._waiting += len(data)
        self._arrived.set()
        if self._waiting > MAX_WAITING_BYTES and not self._paused:
            self._paused = True
            self._stdout.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._output_open = False
            self._arrived.set()
        elif fd == 0:
            self._may_write.set()
        else:
            if self._stderr:
                self._take_stderr(b"\n")
            self._stderr_over.set()

    def process_exited(self) -> None:
        self.ended.set()
        asyncio.get_running_loop().call_later(
            _LAST_WORDS_SECONDS, self.pipe_connection_lost, 1, None
        )

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    # What the connection calls.

    async def lines(self) -> AsyncIterator[list[bytes | LongLine]]:
        """All whole lines that have come, several at a time, until the output or process ends.

        A child of the server may hold its output open for ever; the server's own end counts.
        """
        line = _Line()
        while True:
            while self._chunks:
                chunk = self._next_chunk()
                head, *rest = chunk.split(b"\n")
                line.add(head)
                if not rest:
                    continue
                whole = [line.taken(), *rest[:-1]]
                line.add(rest[-1])
                yield whole
            if not self._output_open:
                # What follows the last line end is half a message.
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def write(self, line: bytes) -> None:
        """Raises OSError once the server has closed its input."""
        pipe = self._stdin
        if pipe.is_closing() or self.ended.is_set():
            raise BrokenPipeError("the server has closed its input")
        pipe.write(line)
        await self._may_write.wait()

    async def end(self) -> None:
        """Closes the input, waits, then ends the whole group: first asked, then killed.

        Returns within `LEAVE_SECONDS` and `TERM_SECONDS`. Whatever cuts it short, the group is
        killed.
        """
        try:
            self._leaving = True
            self._stdin.close()
            while self._chunks:
                self._next_chunk()
            with anyio.move_on_after(LEAVE_SECONDS):
                await self.ended.wait()
            if _signal_group(self._group, signal.SIGTERM):
                with anyio.move_on_after(TERM_SECONDS):
                    # Nothing tells when the last of a group is gone.
                    while _signal_group(self._group, 0):  # noqa: ASYNC110
                        await anyio.sleep(_POLL_SECONDS)
        finally:
            _signal_group(self._group, signal.SIGKILL)
            self.transport.close()
        with anyio.move_on_after(TERM_SECONDS):
            await self.ended.wait()

    async def silent(self) -> None:
        """Waits a little for what it has still to say; a child may hold its stderr open."""
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._stderr_over.wait()

    def ending(self) -> str:
        """How the process ended, in words; empty while it lives."""
        code = self.transport.get_returncode()
        if code is None:
            return ""
        if code < 0:
            with suppress(ValueError):
                return f"The command was ended by {signal.Signals(-code).name}."
        return f"The command ended with exit code {code}."

    @property
    def _group(self) -> int:
        return self.transport.get_pid()

    @property
    def _stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self.transport.get_pipe_transport(0))

    @property
    def _stdout(self) -> asyncio.ReadTransport:
        return cast("asyncio.ReadTransport", self.transport.get_pipe_transport(1))

    def _next_chunk(self) -> bytes:
        chunk = self._chunks.popleft()
        self._waiting -= len(chunk)
        if self._paused and self._waiting <= MAX_WAITING_BYTES // 2 and self._output_open:
            self._paused = False
            self._stdout.resume_reading()
        return chunk

    def _take_stderr(self, data: bytes) -> None:
        *whole, rest = (self._stderr + data).split(b"\n")
        # A program that never ends a line shall not fill the memory.
        self._stderr = rest if len(rest) < 65_536 else b""
        if len(rest) >= 65_536:
            whole.append(rest)
        for line in whole[-200:]:
            self._on_stderr(line[:16_384].decode(errors="replace"))


class _Line:
    """One line in pieces. Of one that is too long the ends are kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0
        self._start = b""

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        self._parts.append(piece)
        if self._length > MAX_LINE_BYTES:
            # Not all of it is put together for that.
            self._start = self._start or b"".join(self._parts[:_END_PIECES])[:KEPT_ENDS]
            self._parts = [b"".join(self._parts[-_END_PIECES:])[-KEPT_ENDS:]]

    def taken(self) -> bytes | LongLine:
        """The whole line; the next one begins."""
        whole = b"".join(self._parts)
        line = whole if not self._start else LongLine(self._length, self._start, whole)
        self._parts, self._length, self._start = [], 0, b""
        return line


@asynccontextmanager
async def running(
    spec: ServerSpec,
    environ: Mapping[str, str],
    *,
    on_stderr: Callable[[str], None],
) -> AsyncIterator[ServerProcess]:
    """The server's process for as long as the block lasts; after it none of its group is left.

    Nor is what has left the group, as far as `strays` finds it. Raises Unreachable when it cannot
    be started.
    """
    process = ServerProcess(on_stderr)
    folder = Path(spec.cwd) if spec.cwd is not None else None
    async with no_strays(ask_seconds=STRAY_SECONDS) as mark:
        try:
            await started(
                process,
                [spec.command, *spec.args],
                cwd=folder,
                env=inherited(environ) | dict(spec.env) | mark,
            )
        except (OSError, ValueError) as error:
            missing = folder is not None and not folder.is_dir()
            raise Unreachable(spawn_failure(error, spec, missing)) from None
        try:
            yield process
        finally:
            with anyio.CancelScope(shield=True):
                await process.end()


def _signal_group(group: int, number: int) -> bool:
    """Whether the group still had members; a group that may not be signalled counts as there."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
