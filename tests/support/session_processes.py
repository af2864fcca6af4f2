"""Starts `tests.support.session_writer`, or another one, and talks to it line by line."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import TracebackType
from typing import Self

import asyncpg

from tests.support.environment import CHECKOUT, environment

ANSWER_SECONDS = 30
NAME = "session_processes"
"""By which PostgreSQL knows the connections of the processes."""


class SessionWriter:
    """A process that holds a session, or performs runs, of the database at an address."""

    def __init__(
        self, address: str, seconds: float, module: str = "tests.support.session_writer"
    ) -> None:
        self._module = module
        self._address = address
        if not address.startswith("sqlite"):
            self._address += f"{'&' if '?' in address else '?'}application_name={NAME}"
        self._arguments = (self._address, str(seconds))

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module, *self._arguments),
            cwd=CHECKOUT,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert await self.answer() == "ready"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def answer(self) -> str:
        """The next line; '' when the process has ended."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_SECONDS)
        return line.decode().strip()

    async def ask(self, line: str) -> str:
        self.say(line)
        return await self.answer()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> list[str]:
        """kill -9; returns what it still said, once its connections have ended too.

        PostgreSQL may for a while be at work on the last thing that it was sent.
        """
        self._process.kill()
        await self._process.wait()
        said = []
        while line := await self.answer():
            said.append(line)
        if not self._address.startswith("sqlite"):
            await _until_gone(self._address)
        return said


async def _until_gone(address: str) -> None:
    connection = await asyncpg.connect(address, server_settings={"application_name": "other"})
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            while await connection.fetch(  # noqa: ASYNC110 (it asks a server)
                "SELECT 1 FROM pg_stat_activity "
                f"WHERE datname = current_database() AND application_name = '{NAME}'"
            ):
                await asyncio.sleep(0.01)
    finally:
        await connection.close()
