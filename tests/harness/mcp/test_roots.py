"""Servers of a chat are told of its folder; those without one do not learn that there are any."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening, text_of
from tests.support.mcp_wire import SECONDS
from web.harness.mcp.connections import live_connections
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio

ERAS: tuple[Protocol, ...] = ("2026-07-28", "legacy")


@pytest.mark.parametrize("protocol", ERAS)
async def test_the_folder_is_told_and_made_when_it_is_asked_for(
    anyio_backend: str, tmp_path: Path, protocol: Protocol
) -> None:
    folder = tmp_path / "files of a chat" / "c1"
    async with (
        listening(build_server().streamable_http_app()) as port,
        live_connections(os.environ, roots=[folder]) as connections,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        connection = connections.connect(ServerSpec("web", "http", url=url, protocol=protocol))
        with anyio.fail_after(SECONDS):
            assert '"roots"' in text_of(await connection.call("can", {}))
            assert not folder.exists()
            told = text_of(await connection.call("roots", {}))
    assert told == f"c1 {folder.as_uri()}"
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("protocol", "folders", "may_know"),
    [("legacy", ["/f"], False), pytest.param("2026-07-28", [], True, marks=pytest.mark.full)],
)
async def test_a_server_is_told_of_none_where_there_are_none_or_it_may_not_know(
    anyio_backend: str, protocol: Protocol, folders: list[str], may_know: bool
) -> None:
    async with (
        listening(build_server().streamable_http_app()) as port,
        live_connections(os.environ, roots=list(map(Path, folders))) as connections,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        spec = ServerSpec("web", "http", url=url, protocol=protocol, roots=may_know)
        connection = connections.connect(spec)
        with anyio.fail_after(SECONDS):
            assert "roots" not in text_of(await connection.call("can", {}))
            with pytest.raises(ToolError, match="roots capability"):
                await connection.call("roots", {})


@pytest.mark.full
@pytest.mark.parametrize("protocol", ERAS)
async def test_a_folder_that_cannot_be_made_is_no_crash(
    anyio_backend: str, tmp_path: Path, protocol: Protocol
) -> None:
    (tmp_path / "file").touch()
    async with (
        listening(build_server().streamable_http_app()) as port,
        live_connections(os.environ, roots=[tmp_path / "file" / "c1"]) as connections,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        connection = connections.connect(ServerSpec("web", "http", url=url, protocol=protocol))
        with anyio.fail_after(SECONDS):
            with pytest.raises(ToolError, match="folder cannot be made"):
                await connection.call("roots", {})
            assert "roots" in text_of(await connection.call("can", {}))
