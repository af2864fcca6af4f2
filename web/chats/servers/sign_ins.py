"""What a page shows of signing in to a server."""

from __future__ import annotations

from web.chats.parts.kinds import ServerSignIn
from web.chats.parts.links import shown_address
from web.harness.mcp.connection import Connection


def shown_sign_in(connection: Connection) -> ServerSignIn:
    """Whether it can be begun, where to go once it was, and whether it can be taken back."""
    status, access = connection.status, connection.access
    return ServerSignIn(
        offered=status.state == "sign_in" and access.possible and not access.begun,
        address=shown_address(status.sign_in) if status.sign_in else None,
        seconds=access.setup.seconds,
        done=status.signed_in,
    )
