"""A server that speaks the page's protocol with parts, and troubles, that a test scripts."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.browser.client.pages import STYLE, chat_page
from tests.support.environment import CHECKOUT
from web.chats.parts.channel import Channel, Clock, Watcher
from web.chats.parts.kinds import PartData

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that the server saw."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]


class Cut(Exception):
    """Ends a response in the middle, as a network does."""


@dataclass(eq=False)
class Script:
    """Chats and their parts, and what goes wrong, as the test says.

    A part's data is its HTML, in which `@` stands for the attributes that every part has, `%` for
    its children, and `=ID` for its id as the value of an attribute.
    """

    epoch: str = "first"
    beat: float = 0.5
    clock: Clock = field(init=False)
    channels: dict[str, Channel] = field(default_factory=dict)
    gone: dict[str, Json] = field(default_factory=dict)
    requests: list[Sent] = field(default_factory=list)
    open: set[Stream] = field(default_factory=set)
    most: int = 0
    """Streams that were open at once, at most."""
    silent: bool = False
    """Streams say nothing from now on, not even a beat."""
    buffered: bool = False
    """New streams open, and nothing of them arrives."""
    refused: bool = False
    """New streams are answered with an error."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes each of the next streams is cut."""
    drafts: dict[str, str] = field(default_factory=dict)
    """What is typed and not sent, by the chat."""
    answers: dict[str, Callable[[Sent], Awaitable[Response]]] = field(default_factory=dict)
    """What a POST to a path is answered; without one, 200 with `HX-Trigger: changed`."""
    policy: str = POLICY

    def __post_init__(self) -> None:
        self.clock = Clock(self.epoch)
        self._news = asyncio.Condition()
        self.chat("chats")

    def chat(self, name: str) -> Channel:
        return self.channels.setdefault(name, Channel(name, self.clock))

    def put(
        self, chat: str, id: str, html: str, *, slot: str = "log", rank: float | None = None
    ) -> None:
        self.chat(chat).put(id, slot, cast(PartData, html), rank=rank)

    def remove(self, chat: str, id: str) -> None:
        self.chat(chat).remove(id)

    def restart(self, epoch: str, *, keep: tuple[str, ...] = ()) -> None:
        """A new process: the chats that are not kept are gone, and versions start again."""
        kept = {name: each for name, each in self.channels.items() if name in keep}
        lost = [name for name in self.channels if name not in (*keep, "chats")]
        self.epoch, self.clock, self.channels = epoch, Clock(epoch), {}
        self.chat("chats")
        for name, channel in kept.items():
            for slot in channel._slots:
                for part in channel.slot(slot):
                    self.put(name, part.id, cast(str, part.data), slot=slot)
        for name in lost:
            self.end(name, "restarted")
        self.cut()

    def end(self, chat: str, code: str) -> None:
        self.channels.pop(chat, None)
        self.gone[chat] = {
            "name": chat,
            "code": code,
            "message": f"Chat {chat} is {code}.",
            "hint": "Its text stays here.",
        }
        self.clock.tick()
        for channel in self.channels.values():
            channel.touch()

    def cut(self) -> None:
        """Breaks every open stream."""
        for stream in list(self.open):
            stream.broken.set()

    def inject(self, frame: Json) -> None:
        """Sends a frame as it is on every open stream."""
        for stream in self.open:
            stream.extra.append(frame)
            stream.poke.set()

    def frame(self, names: list[str], after: str) -> Json:
        epoch, _, number = after.partition(":")
        version = int(number) if epoch == self.epoch else -1
        known = [self.channels[name] for name in names if name in self.channels]
        channels = []
        for channel in known:
            found = channel.changes(version)
            full = found.full or epoch != self.epoch
            parts = [
                {"id": each.id, "version": each.version, "gone": True}
                if each.part is None
                else {
                    "id": each.id,
                    "slot": each.part.slot,
                    "after": each.after,
                    "version": each.version,
                    "html": self._html(channel, each.part, empty=True),
                }
                for each in found.changes
            ]
            if parts or full:
                channels.append({"name": channel.name, "full": full, "parts": parts})
        gone = [self.gone[name] for name in names if name in self.gone]
        told = {"token": f"token of {self.epoch}"} if epoch != self.epoch else {}
        return {
            "epoch": self.epoch,
            "version": self.clock.version,
            "channels": channels,
            "gone": gone,
            **told,
        }

    def region(self, chat: str, slot: str) -> str:
        channel = self.chat(chat)
        return "".join(self._html(channel, part) for part in channel.slot(slot))

    def _html(self, channel: Channel, part: Any, *, empty: bool = False) -> str:
        attributes = f'id="{part.id}" data-part data-version="{part.version}"'
        children = "" if empty else self.region(channel.name, part.id)
        html = str(part.data).replace("@", attributes).replace("=ID", f'="{part.id}"')
        return html.replace("%", children)

    async def note(self, sent: Sent | None = None) -> None:
        """Wakes who waits in `until`."""
        if sent is not None:
            self.requests.append(sent)
        async with self._news:
            self._news.notify_all()

    async def until(self, true: Callable[[], bool], seconds: float = 10) -> None:
        """Waits until something that requests and streams decide is true."""
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(true)

    def asked(self, path: str, method: str = "GET") -> list[Sent]:
        return [each for each in self.requests if (each.path, each.method) == (path, method)]

    # Routes

    async def page(self, request: Request) -> Response:
        chat = request.path_params.get("chat", "")
        await self.note(await sent(request))
        if chat:
            self.chat(chat)
        draft = self.drafts.get(chat, "")
        text = chat_page(chat, self.epoch, self.clock.version, self.beat, self.region, draft)
        headers = {"Content-Security-Policy": self.policy}
        return HTMLResponse(text, headers=headers)

    async def style(self, request: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    async def changes(self, request: Request) -> Response:
        await self.note(await sent(request))
        query = request.query_params
        return JSONResponse(self.frame(query["channels"].split(","), query["after"]))

    async def stream(self, request: Request) -> Response:
        await self.note(await sent(request))
        if self.refused:
            return Response("no", 503)
        stream = Stream(self, request)
        return StreamingResponse(stream.events(), media_type="text/event-stream")

    async def post(self, request: Request) -> Response:
        seen = await sent(request)
        await self.note(seen)
        answer = self.answers.get(seen.path)
        if answer is not None:
            return await answer(seen)
        if seen.path.endswith("/draft"):
            self.drafts[seen.path.split("/")[2]] = seen.form["text"]
        return Response("", headers={"HX-Trigger": "changed"})

    def app(self) -> ASGIApp:
        htmx = StaticFiles(packages=[("js_lib_htmx", "static/htmx")])
        app = Starlette(
            routes=[
                Route("/", self.page),
                Route("/test.css", self.style),
                Route("/changes", self.changes),
                Route("/stream", self.stream),
                Route("/chats/{chat}", self.page),
                Route("/{rest:path}", self.post, methods=["POST"]),
                Mount("/static/htmx", htmx),
                Mount("/static", StaticFiles(directory=Path(CHECKOUT) / "static")),
            ]
        )

        async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
            async def uncached(message: Message) -> None:
                if message["type"] == "http.response.start" and scope["path"] != "/":
                    message["headers"].append((b"cache-control", b"no-cache"))
                await send(message)

            with suppress(Cut):
                await app(scope, receive, uncached)

        return quiet


@dataclass(eq=False)
class Stream:
    """One open event stream."""

    script: Script
    request: Request
    extra: list[Json] = field(default_factory=list)
    poke: asyncio.Event = field(default_factory=asyncio.Event)
    broken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def names(self) -> list[str]:
        return self.request.query_params["channels"].split(",")

    async def events(self) -> AsyncIterator[bytes]:
        script = self.script
        limit = script.cuts.pop(0) if script.cuts else None
        script.open.add(self)
        script.most = max(script.most, len(script.open))
        await script.note()
        held = script.buffered
        try:
            async for text in self._texts():
                data = text.encode()
                if held or script.silent:
                    continue
                if limit is not None and len(data) >= limit:
                    yield data[:limit]
                    raise Cut
                if limit is not None:
                    limit -= len(data)
                yield data
            raise Cut
        finally:
            script.open.discard(self)
            await asyncio.shield(script.note())

    async def _texts(self) -> AsyncIterator[str]:
        """Events as text until the stream is broken: a beat, then frames and beats."""
        script = self.script
        cursor = self.request.headers.get("last-event-id") or self.request.query_params["after"]
        yield f"retry: 100\n\n{self._beat()}"
        while not self.broken.is_set():
            # A restarted script has new channels, so they are looked up again each time.
            channels = [script.channels[name] for name in self.names if name in script.channels]
            with Watcher(channels) as watcher:
                frame = script.frame(self.names, cursor)
                if frame["channels"] or frame["gone"]:
                    cursor = f"{frame['epoch']}:{frame['version']}"
                    yield _event(frame)
                while self.extra:
                    yield _event(self.extra.pop(0))
                if not await self._something(watcher):
                    yield self._beat()

    async def _something(self, watcher: Watcher) -> bool:
        """Waits for a change, a poke or a break; False after the time of a beat."""
        waits = [
            asyncio.ensure_future(each)
            for each in (watcher.changed(), self.poke.wait(), self.broken.wait())
        ]
        try:
            done, _ = await asyncio.wait(
                waits, timeout=self.script.beat, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for each in waits:
                each.cancel()
        self.poke.clear()
        return bool(done)

    def _beat(self) -> str:
        script = self.script
        data = json.dumps({"epoch": script.epoch, "version": script.clock.version})
        return f"event: beat\ndata: {data}\n\n"


def _event(frame: Json) -> str:
    return f"id: {frame['epoch']}:{frame['version']}\nevent: frame\ndata: {json.dumps(frame)}\n\n"


async def sent(request: Request) -> Sent:
    form = {}
    if request.method == "POST":
        form = {name: str(value) for name, value in (await request.form()).items()}
    return Sent(request.method, request.url.path, dict(request.query_params), form)


def error(message: str, status: int = 409) -> Response:
    return HTMLResponse(f'<p class="error" role="alert">{escape(message)}</p>', status)


class _Server(uvicorn.Server):
    """Leaves signals to the test runner."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def running(script: Script) -> AsyncIterator[str]:
    """Serves the script on a free port; gives its address without a slash at the end."""
    config = uvicorn.Config(
        script.app(), log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = _Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            script.cut()
            server.should_exit = True
            await serving
