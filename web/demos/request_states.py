"""What the demo server wants back with a person's answer."""

from __future__ import annotations

import base64

from mcp.server.request_state import InvalidRequestState, RequestStateSecurity

KEPT_SECONDS = 30 * 24 * 3600.0
"""How long a form may be open."""


class OpenStates:
    """The `RequestStateCodec` of a server that only ever talks to the program that started it.

    Who could change what comes back could change the whole server, so it is not sealed. The key of
    a seal would end with the process, and with it each form that is open.
    """

    def seal(self, payload: bytes) -> str:
        return base64.urlsafe_b64encode(payload).decode()

    def unseal(self, token: str) -> bytes:
        """Raises InvalidRequestState for what is no state."""
        try:
            return base64.urlsafe_b64decode(token)
        except ValueError as error:
            raise InvalidRequestState("malformed") from error


def open_states() -> RequestStateSecurity:
    """Forms stay open over a restart of the server, for `KEPT_SECONDS`."""
    return RequestStateSecurity(codec=OpenStates(), ttl=KEPT_SECONDS)
