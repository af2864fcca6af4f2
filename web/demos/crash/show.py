"""`harness-web demo crash`: has a server write an answer, kills it in the middle, and tells what
became of the answer."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Literal
from urllib.parse import quote

import httpx

from web.demos.crash.api import Api
from web.demos.crash.asked import Asked
from web.demos.crash.child import CannotShow, Servers
from web.demos.crash.deciding import Answer, Deciding
from web.demos.crash.saying import say, tell
from web.demos.crash.seen import Seen, Shown
from web.demos.crash.telling import Telling, tell_kept
from web.demos.crash.verdict import Begun, judge
from web.harness.sessions.opening import store_kind
from web.harness.values.errors import ConfigurationError

Moment = Literal["tools", "text"]
"""Where the server is killed: while tools run, or in the middle of the last answer."""

MOMENTS: tuple[Moment, ...] = ("tools", "text")

WORDS_BEFORE = 25
"""Of the last answer, that are shown before the server is killed."""

STILL_SECONDS = 90.0
"""Without an event, while nobody is asked anything."""

END_SECONDS = 5.0
"""For a server to end, once the events have broken off."""

MOST_BROKEN = 10

LOOK_SECONDS = 3.0
"""For a browser to open the page."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for. An empty `store` is a file in a folder that is deleted at
    the end; with `stay` the server stays until it is interrupted; `answer` is given to what is
    asked, and '' stands for asking the person."""

    store: str = ""
    port: int = 0
    open_browser: bool = False
    stay: bool = False
    fast: bool = False
    moments: Sequence[Moment] = MOMENTS
    answer: Answer | Literal[""] = ""


def show(options: Options) -> int:
    """Runs the demo. 0 where all that was promised held, 1 where it did not, 130 interrupted.

    Raises ConfigurationError for a store that keeps nothing, CannotShow.
    """
    if options.store and store_kind(options.store) not in ("sqlite", "postgresql"):
        raise ConfigurationError(
            "--store: the demo needs a store that outlives its server.",
            hint="It is sqlite:///PATH or postgresql://USER@HOST/DATABASE.",
        )
    with tempfile.TemporaryDirectory(
        prefix="harness-web-crash-", ignore_cleanup_errors=True
    ) as folder:
        try:
            return asyncio.run(_show(options, Path(folder)))
        except asyncio.CancelledError:
            return 130


async def _show(options: Options, folder: Path) -> int:
    this = asyncio.current_task()
    if sys.platform != "win32" and this is not None:
        # Whoever ends the demo ends its server too.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    store = options.store or f"sqlite:///{quote(str(folder / 'chats.sqlite3'))}"
    asked = Asked(store, options.port, str(folder), token_urlsafe(24), options.fast)
    servers = Servers(asked)
    try:
        demo = Demo(options, servers)
        held = await demo.run()
        if options.stay:
            with suppress(asyncio.CancelledError):
                await demo.stay()
        return 0 if held else 1
    finally:
        await asyncio.shield(servers.aclose())


class Demo:
    """One answer, from its message to the verdict on it."""

    def __init__(self, options: Options, servers: Servers) -> None:
        self._options = options
        self._servers = servers
        self._seen = Seen()
        self._moments = list(options.moments)
        self._kills: list[Begun] = []
        self._run_id = ""
        self._broken = 0
        self._telling = Telling(self._seen)

    async def run(self) -> bool:
        """Whether all held."""
        tell("A server is killed in the middle of an answer, and the answer goes on.")
        await self._servers.start()
        api = Api(self._servers.address)
        try:
            chat_id, self._run_id = await api.send()
            self._introduce(f"{self._servers.address}/chats/{chat_id}")
            if self._options.open_browser:
                await asyncio.sleep(LOOK_SECONDS)
            async with Deciding(api, self._run_id, self._options.answer) as deciding:
                while self._seen.result is None:
                    await self._follow(api, deciding)
            messages, again = await self._look_back(api, chat_id)
        finally:
            await api.aclose()
        ledger = self._servers.asked.ledger
        verdict = judge(self._seen, self._kills, ledger.began(), messages, again)
        tell("")
        for line in verdict.lines:
            tell(line)
        tell("It held." if verdict.held else "It did not hold.")
        return verdict.held

    async def stay(self) -> None:
        """Starts a new server whenever one ends, until this is cancelled."""
        tell("")
        tell(f"The server stays until Ctrl+C, at {self._servers.address}. Kill it in the page.")
        while True:
            await self._servers.ended()
            await self._restart(by_us=False)

    def _introduce(self, page: str) -> None:
        options = self._options
        kind = store_kind(options.store) if options.store else "sqlite"
        where = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[kind or "sqlite"]
        kept = "it is kept there" if options.store else "in a folder that is deleted at the end"
        say("Page", page)
        say("Kept in", f"{where}, {kept}")
        say("Server", f"process {self._servers.pid}")
        if options.open_browser:
            # Some browsers keep the caller waiting until their window is closed.
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

    async def _follow(self, api: Api, deciding: Deciding) -> None:
        """Reads on from the last event that was seen, until the result or the server's end."""
        deciding.look(self._seen, anew=True)
        until = asyncio.timeout(STILL_SECONDS)
        try:
            async with until, aclosing(api.events(self._run_id, self._seen.last)) as events:
                async for event in events:
                    self._telling.take(event)
                    deciding.look(self._seen)
                    asking = self._seen.questions and deciding.asks
                    until.reschedule(None if asking else _now() + STILL_SECONDS)
                    if self._seen.result is not None:
                        return
                    if self._moments and self._is(self._moments[0]):
                        self._moments.pop(0)
                        await self._kill(api)
                        return
        except TimeoutError:
            raise CannotShow("The answer stands still, though its server lives.") from None
        except httpx.TransportError:
            pass
        await self._after_a_break(api)

    async def _kill(self, api: Api) -> None:
        tell("")
        say("Killed", f"process {self._servers.pid} (SIGKILL)")
        await self._servers.kill()
        await self._go_on(api, by_us=True)

    async def _after_a_break(self, api: Api) -> None:
        """The events broke off: their server was killed from the page, or lives."""
        try:
            await asyncio.wait_for(self._servers.ended(), END_SECONDS)
        except TimeoutError:
            self._broken += 1
            if self._broken > MOST_BROKEN:
                raise CannotShow("The events break off, though their server lives.") from None
        else:
            await self._go_on(api, by_us=False)

    async def _go_on(self, api: Api, *, by_us: bool) -> None:
        """After a server has ended: another one, and a look at what is left."""
        self._kills.append(Begun.at(self._seen, self._servers.asked.ledger.began()))
        await self._restart(by_us=by_us)
        again: list[Shown] = []
        # One that is killed meanwhile is followed by another look.
        with suppress(httpx.TransportError):
            async with aclosing(api.events(self._run_id, 0)) as events:
                async for event in events:
                    again.append(event)
                    if event.number >= self._seen.last:
                        break
            if fault := self._seen.differs(again):
                self._seen.faults.append(fault)
            tell_kept(self._seen)

    async def _look_back(self, api: Api, chat_id: str) -> tuple[list[dict[str, Any]], list[Shown]]:
        """The messages of the chat at the end, and the events of the run, read once more."""
        while True:
            try:
                messages = await api.messages(chat_id)
                return messages, [each async for each in api.events(self._run_id, 0)]
            except httpx.TransportError:
                await self._after_a_break(api)

    async def _restart(self, *, by_us: bool) -> None:
        if not by_us:
            tell("")
            say("Killed", "from the page")
        seconds = await self._servers.start()
        say("Started", f"process {self._servers.pid}, after {seconds:.1f} s")

    def _is(self, moment: Moment) -> bool:
        seen = self._seen
        if moment == "tools":
            has_ended = seen.call("look_up_tide").result is not None
            under_way = seen.call("measure_basin").progress and seen.call("post_letter").starts
            return has_ended and bool(under_way)
        texts = list(seen.texts.values())
        return len(texts) > 1 and len(texts[-1].split()) >= WORDS_BEFORE


def _now() -> float:
    return asyncio.get_running_loop().time()
