"""The response that carries an event stream."""

from __future__ import annotations

from sse_starlette.sse import EventSourceResponse
from starlette.types import Message, Send


class EventStream(EventSourceResponse):
    """An `EventSourceResponse` whose pieces go straight to the connection.

    The parent puts a cancel scope around every send, for a time limit that nobody sets here. With
    a piece for every token that is a quarter of all that the stream costs.
    """

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        await send(message)
