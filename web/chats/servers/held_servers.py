"""A connection of one chat, and the tools that were made of what its server lists."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from web.harness.mcp.connection import Connection

if TYPE_CHECKING:
    import mcp_types

    # This brings the SDK's types and a schema checker: it is loaded with the first tool list.
    from web.harness.mcp.offered import OfferedTool


@dataclass(slots=True, eq=False)
class Held:
    """A connection, and the tools made from the list `source` of its server."""

    key: str
    connection: Connection
    of_host: bool
    source: tuple[mcp_types.Tool, ...] = ()
    offered: list[OfferedTool] = field(default_factory=list)
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    made: bool = False
    """Its tools were made once; until they are made anew, those can be called."""
    waited: bool = False
    """A run has waited for its first connect; no other one does."""

    @property
    def is_stale(self) -> bool:
        return self.source is not self.connection.status.tools

    @property
    def is_usable(self) -> bool:
        """Whether a call may find it connected: now, or after the next attempt."""
        status = self.connection.status
        return status.state in ("ready", "connecting") or status.retry_at is not None
