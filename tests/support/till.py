"""The server of `till_server.py`, as a test has it: it hears when a call has begun, and lets it go
on."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

from tests.support.environment import CHECKOUT

WAIT_SECONDS = 30.0


class Till:
    """Its pipes and its list of what was paid are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for pipe in ("began", "go"):
            os.mkfifo(folder / pipe)
        # Open at both ends, so that nobody waits for the other to come.
        self._began = os.open(folder / "began", os.O_RDWR | os.O_NONBLOCK)

    @property
    def command(self) -> str:
        server = CHECKOUT / "tests" / "support" / "till_server.py"
        return shlex.join([sys.executable, "-S", str(server), str(self.folder)])

    @property
    def paid(self) -> int:
        """How often it was called."""
        file = self.folder / "paid"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def configuration(self) -> Path:
        """A file that has every chat have it."""
        command, *args = shlex.split(self.command)
        file = self.folder / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"till": {"command": command, "args": args}}}))
        return file

    async def began(self) -> None:
        """Returns when a call has begun since the last time."""
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._began, heard.set)
        try:
            await asyncio.wait_for(heard.wait(), WAIT_SECONDS)
            os.read(self._began, 1)
        finally:
            loop.remove_reader(self._began)

    def let_go(self, text: str) -> None:
        """Has the call that has begun answer with this."""
        with (self.folder / "go").open("w") as pipe:
            pipe.write(text)

    def close(self) -> None:
        os.close(self._began)
