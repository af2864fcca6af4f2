"""Connections that end with the test, and that come back at once."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from web.harness.mcp.backoff import Backoff
from web.harness.mcp.connections import Connections, live_connections


@pytest.fixture
async def connections(anyio_backend: str) -> AsyncIterator[Connections]:
    """An owner of connections whose back-off is short."""
    async with live_connections(os.environ, backoff=Backoff(first=0.05, most=0.2)) as held:
        yield held
