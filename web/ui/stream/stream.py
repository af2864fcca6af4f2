"""The page's event stream, and what changed after a cursor for those who ask once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from sse_starlette.event import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.parts.channel import Channel, Watcher
from web.harness.values.errors import LimitExceeded
from web.ui.access.identity import unknown_identity
from web.ui.services import UiServices
from web.ui.stream.event_stream import EventStream, while_known
from web.ui.stream.frames import Cursor, Frames
from web.ui.stream.pace import Pace, Steps

BEAT_SECONDS = 5
"""A reader that hears nothing for much longer knows that the stream is stalled."""

MAX_CHANNELS = 256
"""Of one stream: the tabs of one browser share it."""


def stream_routes(services: UiServices) -> list[Route]:
    pace = Pace()

    async def stream(request: Request) -> Response:
        """`?channels=a,b&after=EPOCH:VERSION`; a Last-Event-ID header wins over `after`."""
        channels, frames = _asked(request, services)
        services.open_streams.check()
        return EventStream(
            while_known(services, request, _frames(services, channels, frames, pace)),
            ping=BEAT_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(_beat(services), event="beat"),
            sep="\n",
        )

    async def changes(request: Request) -> Response:
        """One frame as JSON with all that changed; `channels` is empty where nothing did."""
        _, frames = _asked(request, services)
        frame = await frames.next()
        body = (frame or _nothing(services, frames)).encode(errors="replace")
        return Response(body, media_type="application/json")

    return [Route("/stream", stream), Route("/changes", changes)]


def _asked(request: Request, services: UiServices) -> tuple[Mapping[str, Channel | None], Frames]:
    identity = services.identify(request)
    # An event stream cannot be asked for with a header.
    if request.query_params.get("person", services.person(request)) != services.person(request):
        raise unknown_identity(services.identity)
    names = [name for name in request.query_params.get("channels", "").split(",") if name]
    if len(names) > MAX_CHANNELS:
        raise LimitExceeded(f"At most {MAX_CHANNELS} chats can share one stream.")
    channels = {name: services.chats.channel(identity, name) for name in names}
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    after = Cursor.parse(given)
    frames = Frames(
        services.chats.clock,
        services.fragments,
        channels,
        after,
        in_memory=services.chats.kept is None,
        token=services.page_token,
    )
    return channels, frames


async def _frames(
    services: UiServices, channels: Mapping[str, Channel | None], frames: Frames, pace: Pace
) -> AsyncGenerator[bytes, None]:
    """Pulls what changed: at once, then as often as the pace allows. Holds no queue."""
    with (
        services.open_streams.one_more(),
        Watcher(channel for channel in channels.values() if channel is not None) as watcher,
    ):
        steps = Steps(pace)
        yield f"retry: 1000\nevent: beat\ndata: {_beat(services)}\n\n".encode()
        while True:
            frame = await frames.next()
            if frame is not None:
                yield f"id: {frames.cursor}\nevent: frame\ndata: {frame}\n\n".encode(
                    errors="replace"
                )
                await asyncio.sleep(steps.wait())
            await watcher.changed()


def _beat(services: UiServices) -> str:
    clock = services.chats.clock
    return f'{{"epoch":"{clock.epoch}","version":{clock.version}}}'


def _nothing(services: UiServices, frames: Frames) -> str:
    cursor = frames.cursor
    return f'{{"epoch":"{cursor.epoch}","version":{cursor.version},"channels":[],"gone":[]}}'
