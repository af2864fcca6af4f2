"""The response that carries an event stream, and for how long."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from sse_starlette.sse import EventSourceResponse
from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from web.harness.values.errors import HarnessError
from web.ui.services import UiServices


def while_known(
    services: UiServices, connection: HTTPConnection, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The pieces of a stream, until whoever opened it is not known any more: a token may be taken
    back, or given to somebody else, meanwhile."""
    if services.identity.is_local:
        return pieces
    identity = services.identify(connection)

    def is_known() -> bool:
        try:
            return services.identify(connection) == identity
        except HarnessError:
            return False

    return services.known_streams.while_known(pieces, is_known)


class EventStream(EventSourceResponse):
    """An `EventSourceResponse` whose pieces go straight to the connection.

    The parent puts a cancel scope around every send, for a time limit that nobody sets here. With
    a piece for every token that is a quarter of all that the stream costs.
    """

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        await send(message)
