"""One server process after another, under one address."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from dataclasses import replace

from web.demos.crash.asked import Asked
from web.harness.values.errors import HarnessError

COMMAND = (sys.executable, "-m", "web", "demo", "crash", "--serve")

START_SECONDS = 60.0
END_SECONDS = 5.0


class CannotShow(HarnessError):
    """The demo cannot go on."""

    code = "cannot_show"


class Servers:
    """Starts a server, and another one after it has ended. `started` counts them."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.address = ""
        self.started = 0
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def start(self) -> float:
        """Returns once requests are answered: after so many seconds. Raises CannotShow."""
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=PIPE,
            stdout=PIPE,
            # Ctrl+C is for the demo, which ends its server itself.
            start_new_session=True,
        )
        self._process = process
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018 - they are pipes
        stdin.write(self.asked.as_line())
        try:
            line = await asyncio.wait_for(stdout.readline(), START_SECONDS)
        except TimeoutError:
            line = b""
        address = next((word for word in line.decode().split() if word.startswith("http://")), "")
        if not address:
            raise CannotShow(
                "The server of the demo did not start.", hint="What it said stands above."
            )
        self.address = address
        self.started += 1
        # The page and its readers come back to where they were.
        self.asked = replace(self.asked, port=int(address.rpartition(":")[2]))
        return time.monotonic() - began

    async def kill(self) -> None:
        """SIGKILL: the process ends without knowing."""
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()

    async def ended(self) -> int:
        """Returns once the process has ended, whoever ended it: with what status."""
        return await self._process.wait() if self._process is not None else 0

    async def aclose(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
