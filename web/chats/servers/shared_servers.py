"""What people who share a server with others may do with its MCP servers.

Commands run as whoever runs this server, so nobody but the person at this machine starts one. The
servers of the configuration are everybody's: nobody changes them for the others, and what they
print may be about the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from web.chats.chat import Chat
from web.chats.parts.kinds import Server, ServerSignIn
from web.harness.mcp.callers import calling_for
from web.harness.mcp.connection import Connection
from web.harness.mcp.sampling import Sampler
from web.harness.mcp.spec import ServerSpec
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.values.errors import ConfigurationError

if TYPE_CHECKING:
    import mcp_types

    # This brings the SDK's types and a schema checker: it is loaded with the first tool list.
    from web.harness.mcp.offered import OfferedTool


def check_startable(chat: Chat, spec: ServerSpec) -> None:
    """Raises ConfigurationError for a command that the chat's person may not start."""
    if spec.kind == "stdio" and chat.identity != LOCAL_IDENTITY:
        raise ConfigurationError(
            "Commands are not started for people who sign in here, so nothing was.",
            hint="Connect an address, or ask whoever runs this server to put the command into "
            "its configuration file.",
        )


def check_changeable(chat: Chat, name: str, *, of_host: bool) -> None:
    """Raises ConfigurationError where a change would be one for other people too."""
    if of_host and chat.identity != LOCAL_IDENTITY:
        raise ConfigurationError(
            f"'{name}' is connected for everybody here, so you cannot sign in to it, sign out of "
            "it or watch what it has.",
            hint="Ask whoever runs this server, or connect it for yourself by its address.",
        )


def shown_to(chat: Chat, server: Server) -> Server:
    """A server as the chat's person may see it."""
    if not server.of_host or chat.identity == LOCAL_IDENTITY:
        return server
    return replace(server, stderr=(), log=(), sign_in=ServerSignIn())


def offered_to(
    chat: Chat,
    connection: Connection,
    source: tuple[mcp_types.Tool, ...],
    sample: Sampler | None,
) -> list[OfferedTool]:
    """The tools of a server's list, which call it for the chat's person."""
    from web.harness.mcp.offered import offered_tools

    async def call(*given: Any, **more: Any) -> mcp_types.CallToolResult:
        with calling_for(chat.identity):
            return await connection.call(*given, **more)

    return offered_tools(connection.spec.name, source, call, keep=chat.blobs.keep, sample=sample)
