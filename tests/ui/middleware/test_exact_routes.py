"""An address with a line break after it is another address."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.routing import Mount, Route

from tests.support.app_server import app_server
from tests.support.scripted_provider import ScriptedProvider, says
from web.ui.middleware.exact_routes import make_exact

pytestmark = pytest.mark.anyio


async def test_a_line_break_after_the_name_of_a_file_is_not_left_out(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        chat = await server.new_chat()
        given = {"files": ("a.txt", b"mine")}
        sent = await server.client.post(f"/chats/{chat}/uploads", files=given)
        assert sent.status_code < 400, sent.text
        for below in (f"/api/chats/{chat}/files", f"/chats/{chat}/files", f"/chats/{chat}/raw"):
            assert (await server.client.get(f"{below}/a.txt")).status_code == 200
            assert (await server.client.get(f"{below}/a.txt%0a")).status_code == 404
        assert (await server.client.get(f"/chats/{chat}%0a")).status_code == 404
        assert (await server.client.get("/api/health%0a")).status_code == 404


async def test_routes_below_mounts_are_exact_too() -> None:
    inner = Route("/x/{name:path}", lambda request: None)
    make_exact([Mount("/m", routes=[inner])])
    for address, fits in (("/x/a", True), ("/x/a\n", False)):
        assert bool(inner.path_regex.match(address)) is fits
