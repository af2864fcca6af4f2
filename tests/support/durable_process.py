"""Has `tests.support.durable_child` perform runs, watches them and kills them where a test says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.durable_child import Plan
from tests.support.environment import CHECKOUT, environment
from web.harness.values.events import Event

ANSWER_SECONDS = 30.0


class DurableChild:
    """One process. `events` are those that it read, `asked` the questions it answered."""

    def __init__(self, connection: Connection) -> None:
        self.events: list[Event] = []
        self.asked: list[tuple[str, str]] = []
        self.boundaries: list[str] = []
        self.result: tuple[str, str, str] | None = None
        self.failed = ""
        self._connection = connection
        self._pid = 0

    async def next_boundary(self) -> str:
        """The name of the boundary where it stands; '' once it has ended."""
        while message := await self._take():
            if message[0] == "at":
                return str(message[1])
        return ""

    async def next_event(self) -> None:
        """Takes what it says, up to an event."""
        count = len(self.events)
        while len(self.events) == count:
            assert await self._take(), f"It has ended. {self.failed}"

    async def _take(self) -> tuple[Any, ...]:
        message = await self._receive()
        match message:
            case ("hello", pid):
                self._pid = pid
            case ("at", name):
                self.boundaries.append(name)
            case ("shown", number, body):
                self.events.append(Event(number, 0.0, body))
            case ("asked", name, kind):
                self.asked.append((name, kind))
            case ("result", status, text, reason):
                self.result = (status, text, reason)
            case ("failed", code):
                self.failed = code
        return message

    def go_on(self) -> None:
        self._connection.send("go")

    async def ended(self) -> None:
        """Lets it go on to its end."""
        while await self.next_boundary():
            self.go_on()

    async def reached(self, name: str, times: int = 1) -> None:
        """Lets it go on until it stands at a boundary of that name, for the n-th time."""
        while (at := await self.next_boundary()) != name or self.boundaries.count(name) < times:
            assert at, f"It has ended and passed {self.boundaries}."
            self.go_on()

    async def passed(self, boundaries: int) -> bool:
        """Lets it go past so many boundaries; whether it stands at one more."""
        for _ in range(boundaries):
            if not await self.next_boundary():
                return False
            self.go_on()
        return bool(await self.next_boundary())

    def stop(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    async def hello(self) -> None:
        """Before it has said its number nothing can be done with it."""
        while not self._pid:
            assert await self._take(), "It has ended at once."

    def end(self) -> None:
        """kill -9. Whoever takes what it says comes to the end of it."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    async def kill(self) -> None:
        """kill -9, and takes what it still said."""
        self.end()
        while await self.next_boundary():
            pass

    async def _receive(self) -> tuple[Any, ...]:
        if not self._connection.poll():
            await self._says_something()
        with suppress(EOFError, ConnectionResetError):
            return tuple(self._connection.recv())
        return ()

    async def _says_something(self) -> None:
        # Not in a thread, of which there are fewer than children that are waited for.
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._connection.fileno(), heard.set)
        try:
            await asyncio.wait_for(heard.wait(), ANSWER_SECONDS)
        except TimeoutError:
            raise AssertionError(f"It stands still. It passed {self.boundaries}.") from None
        finally:
            loop.remove_reader(self._connection.fileno())


class DurableProcesses:
    """Starts children; see `durable_processes`."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._count = 0

    async def start(self, **plan: Any) -> DurableChild:
        """A child with this `Plan`, but for its socket."""
        self._count += 1
        path = str(self._folder / str(self._count))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(ANSWER_SECONDS)
            listener.bind(path)
            listener.listen()
            assert self._process.stdin is not None
            line = json.dumps(asdict(Plan(path, **plan)))
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
            accepted, _ = await asyncio.to_thread(listener.accept)
        accepted.setblocking(True)
        child = DurableChild(Connection(accepted.detach()))
        await child.hello()
        return child


@contextmanager
def durable_processes() -> Iterator[DurableProcesses]:
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.durable_child"],
            cwd=CHECKOUT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield DurableProcesses(process, Path(folder))
        assert process.stdin is not None
        process.stdin.close()
