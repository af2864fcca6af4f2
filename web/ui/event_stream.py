"""The response that carries an event stream, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from sse_starlette.sse import EventSourceResponse
from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from web.harness.values.errors import HarnessError
from web.ui.services import UiServices

KNOWN_SECONDS = 1.0
"""So long a stream goes on for somebody who is not known any more."""


def while_known(
    services: UiServices, connection: HTTPConnection, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The pieces of a stream, until whoever opened it is not known any more: a token may be taken
    back meanwhile."""
    return pieces if services.identity.is_local else _while_known(services, connection, pieces)


async def _while_known(
    services: UiServices, connection: HTTPConnection, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    checked = loop.time()
    async with aclosing(pieces):
        async for piece in pieces:
            if loop.time() - checked > KNOWN_SECONDS:
                try:
                    services.identify(connection)
                except HarnessError:
                    return
                checked = loop.time()
            yield piece


class EventStream(EventSourceResponse):
    """An `EventSourceResponse` whose pieces go straight to the connection.

    The parent puts a cancel scope around every send, for a time limit that nobody sets here. With
    a piece for every token that is a quarter of all that the stream costs.
    """

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        await send(message)
