"""The folders that servers are told of: where a chat keeps its own files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import mcp_types as types
from mcp.client import ClientRequestContext
from mcp.client.session import ListRootsFnT
from pydantic import FileUrl

from web.harness.tools.threads import run_in_thread

log = logging.getLogger(__name__)


def told_roots(folders: Sequence[Path]) -> ListRootsFnT:
    """Answers a server's request for its roots; the folders are made with the first."""

    def made() -> list[types.Root]:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        return [
            types.Root(uri=FileUrl(folder.resolve().as_uri()), name=folder.name)
            for folder in folders
        ]

    async def tell(context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        try:
            return types.ListRootsResult(roots=await run_in_thread(made))
        except OSError:
            log.exception("A folder for MCP servers could not be made")
            words = "The folder cannot be made."
            return types.ErrorData(code=types.INTERNAL_ERROR, message=words)

    return tell
