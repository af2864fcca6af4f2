"""Who says what becomes of a call of which nobody knows if it ran: the person at the terminal, the
page, or, where there is no terminal, the demo itself."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Literal

import httpx

from web.demos.crash.api import Api
from web.demos.crash.saying import say, tell
from web.demos.crash.seen import Seen

Answer = Literal["ran", "again", "give-up"]

HOW: dict[Answer, str] = {"ran": "result", "again": "retry", "give-up": "abort"}

RESULT = "posted, as a person says who looked"

_TYPED: dict[str, Answer] = {"1": "ran", "2": "again", "3": "give-up"}


class Deciding:
    """Answers what is asked while the block lasts."""

    def __init__(self, api: Api, run_id: str, answer: Answer | Literal[""]) -> None:
        self._api = api
        self._run_id = run_id
        self._answer = answer
        self._lines: asyncio.Queue[str] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def asks(self) -> bool:
        """Whether somebody may take any time to answer."""
        return not self._answer and sys.stdin.isatty()

    async def __aenter__(self) -> Deciding:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def look(self, seen: Seen, *, anew: bool = False) -> None:
        """Sees to the questions that are open; `anew` for a new server, which may not have heard
        what was answered, and does not ask once more."""
        for key, task in self._tasks.items():
            if key not in seen.questions:
                task.cancel()
        for key, call_id in seen.questions.items():
            before = self._tasks.get(key)
            if before is None or (anew and before.done()):
                deciding = self._decide(key, seen.calls[call_id].name)
                self._tasks[key] = asyncio.get_running_loop().create_task(deciding)

    async def _decide(self, key: str, name: str) -> None:
        answer = self._answer or await self._asked(name)
        if not answer:
            answer = "ran"
            say("", "Nobody is here to ask, so the demo says that it ran.")
        text = RESULT if answer == "ran" else ""
        # Where the server ends before it has heard that, the next one is told.
        with suppress(httpx.TransportError):
            await self._api.resolve(self._run_id, key, HOW[answer], text)

    async def _asked(self, name: str) -> Answer | Literal[""]:
        """What the person at the terminal says; '' where there is none."""
        if not self.asks:
            return ""
        tell(f"  Did {name} do its work? Answer here, or in the page:")
        tell("    1  it did, go on    2  run it again    3  give up")
        lines = self._typed()
        while True:
            line = await lines.get()
            if not line:
                return ""
            if line.strip() in _TYPED:
                return _TYPED[line.strip()]
            tell("    Type 1, 2 or 3.")

    def _typed(self) -> asyncio.Queue[str]:
        """The lines of the terminal, '' at its end."""
        if self._lines is None:
            lines: asyncio.Queue[str] = asyncio.Queue()
            self._lines = lines
            loop = asyncio.get_running_loop()

            def read() -> None:
                # From the system: a reader of Python's would hold a lock that is needed at the end.
                line = b"."
                while line:
                    line = os.read(sys.stdin.fileno(), 1024)
                    loop.call_soon_threadsafe(lines.put_nowait, line.decode(errors="replace"))

            threading.Thread(target=read, daemon=True).start()
        return self._lines
