"""Three ways to read one answer, and what each of its readers saw."""

from __future__ import annotations

import asyncio
import json
import re
import time
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.bench.tokens import ages, numbers
from tests.bench.wire import Connection, fetch, open_request

_CURSOR = re.compile(rb'data-epoch="([0-9a-f]+)" data-version="([0-9]+)"')


@dataclass(slots=True)
class Seen:
    """What one reader saw of one answer. Times are of `time.monotonic`, latencies in seconds."""

    latencies: array[float] = field(default_factory=lambda: array("d"))
    sent: float = 0.0
    """When the message was sent."""
    first: float = 0.0
    """When the first token was seen."""
    latest: float = 0.0
    lost: int = 0
    doubled: int = 0

    def take(self, data: bytes, after: int) -> int:
        """Notes the tokens above `after` in `data`; returns the last number there is now."""
        now = time.monotonic_ns()
        last = after
        for number, age in ages(data, after, now):
            last = max(last, number)
            self.latencies.append(age)
        if last > after:
            self.latest = now / 1e9
            if not self.first:
                self.first = self.latest
        return last

    def compare(self, shown: Iterable[int], tokens: int) -> None:
        """Counts what is missing, and what is there twice, of so many tokens."""
        counts = Counter(shown)
        self.lost += tokens - len(counts)
        self.doubled += counts.total() - len(counts)


class Text:
    """An event stream whose events each bring a piece of the text, once and in order."""

    def __init__(self, seen: Seen, end: bytes) -> None:
        self.numbers = array("I")
        self._seen = seen
        self._end = end
        self._rest = b""
        self._last = -1

    def take(self, data: bytes) -> None:
        whole, blank, self._rest = (self._rest + data).rpartition(b"\n\n")
        if blank:
            # What ends the stream may repeat all of the text.
            pieces = whole.partition(self._end)[0]
            self._last = self._seen.take(pieces, self._last)
            self.numbers.extend(numbers(pieces))


class Page:
    """The page's stream: keeps the parts as a browser does, so that the end can be compared."""

    def __init__(self, seen: Seen, chat_id: str) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seen = seen
        self._chat_id = chat_id
        self._rest = b""
        self._last = -1
        self._parts: dict[str, tuple[int, str]] = {}

    def take(self, data: bytes) -> None:
        # The heartbeats between the frames end their lines in another way.
        text = (self._rest + data).replace(b"\r\n", b"\n")
        whole, blank, self._rest = text.rpartition(b"\n\n")
        if not blank:
            return
        for event in whole.split(b"\n\n"):
            head, _, body = event.partition(b"\ndata: ")
            if head.endswith(b"event: frame"):
                self._last = self._seen.take(body, self._last)
                self._apply(json.loads(body))

    @property
    def numbers(self) -> list[int]:
        """The tokens that a browser would show now."""
        return [number for _, html in self._parts.values() for number in numbers(html.encode())]

    def _apply(self, frame: Any) -> None:
        for channel in frame["channels"]:
            if channel["name"] != self._chat_id:
                continue
            if channel["full"]:
                self._parts.clear()
            for part in channel["parts"]:
                if "gone" in part:
                    self._parts.pop(part["id"], None)
                elif part["version"] > self._parts.get(part["id"], (-1, ""))[0]:
                    self._parts[part["id"]] = part["version"], part["html"]
                if part["id"].startswith("e-") and not self.ended.done():
                    self.ended.set_result(None)


@dataclass(slots=True)
class Reading:
    """An answer that is about to be asked for: `send` asks and returns when it was read whole."""

    seen: Seen
    send: Callable[[], Awaitable[None]]
    close: Callable[[], None]


async def events_reading(address: str, prompt: str, tokens: int, side_bar: bool) -> Reading:
    """A chat that a program reads by the JSON API."""
    chat = json.loads(await fetch(address, "POST", "/api/chats", {}))["id"]
    seen = Seen()

    async def send() -> None:
        seen.sent = time.monotonic()
        path = f"/api/chats/{chat}/messages"
        run = json.loads(await fetch(address, "POST", path, {"text": prompt}))["run_id"]
        text = Text(seen, b"event: run_result")
        stream = await open_request(address, "GET", f"/api/runs/{run}/events?after=0", text.take)
        await stream.ended
        stream.close()
        seen.compare(text.numbers, tokens)

    return Reading(seen, send, lambda: None)


async def page_reading(address: str, prompt: str, tokens: int, side_bar: bool) -> Reading:
    """A chat that is open in a browser: its stream is there before the message is sent.

    With `side_bar` the stream carries the list of chats too, as a real page's does.
    """
    chat = json.loads(await fetch(address, "POST", "/api/chats", {}))["id"]
    cursor = _CURSOR.search(await fetch(address, "GET", f"/chats/{chat}"))
    assert cursor is not None, "the page names no cursor"
    seen = Seen()
    page = Page(seen, chat)
    channels = f"chats,{chat}" if side_bar else chat
    path = f"/stream?channels={channels}&after={cursor[1].decode()}:{cursor[2].decode()}"
    stream: Connection = await open_request(address, "GET", path, page.take)

    async def send() -> None:
        seen.sent = time.monotonic()
        await fetch(address, "POST", f"/api/chats/{chat}/messages", {"text": prompt})
        await page.ended
        seen.compare(page.numbers, tokens)

    return Reading(seen, send, stream.close)


async def proxy_reading(address: str, prompt: str, tokens: int, side_bar: bool) -> Reading:
    """The same answer by the bare proxy, in the model's own format."""
    seen = Seen()

    async def send() -> None:
        seen.sent = time.monotonic()
        text = Text(seen, b"data: [DONE]")
        message = {"role": "user", "content": prompt}
        document = {"model": "bench", "stream": True, "messages": [message]}
        stream = await open_request(address, "POST", "/", text.take, document)
        await stream.ended
        stream.close()
        seen.compare(text.numbers, tokens)

    return Reading(seen, send, lambda: None)
