"""Pages and forms over a real connection: nothing that was written can break them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app_server import app_server
from tests.support.scripted_provider import ScriptedProvider, calls, says, thinks

pytestmark = pytest.mark.anyio

BAD = "half \ud83d"


async def test_half_characters_of_a_model_break_neither_page_nor_api(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        calls(("calculate", {"expression": BAD}), (BAD, {BAD: BAD}), text=BAD), thinks(BAD, BAD)
    )
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        await server.wait_for(run_id, "run_result")
        for path in (f"/chats/{chat}", f"/api/chats/{chat}", "/", "/api/chats"):
            assert (await server.client.get(path)).status_code == 200
        epoch = (await server.client.get("/api/health")).json()["epoch"]
        changes = await server.client.get(f"/changes?channels={chat},chats&after={epoch}:0")
        assert changes.status_code == 200
        assert "\ufffd" in changes.text


@pytest.mark.parametrize("charset", ["unicode_escape", "punycode", "undefined", "utf-16"])
async def test_a_form_in_another_encoding_is_refused_and_changes_nothing(
    tmp_path: Path, charset: str
) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nhi \\ud800\r\n--x--\r\n'
    async with app_server(tmp_path, ScriptedProvider(says("x"))) as server:
        answer = await server.client.post(
            "/chats",
            content=body,
            headers={"content-type": f"multipart/form-data; boundary=x; charset={charset}"},
        )
        assert answer.status_code == 415
        assert (await server.client.get("/api/chats")).json() == []
        assert (await server.client.get("/")).status_code == 200


async def test_half_characters_in_a_form_are_replaced(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("x"))) as server:
        answer = await server.client.post(
            "/chats",
            content=b"text=a%ed%a0%80b",
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
        assert answer.status_code == 303
        assert (await server.client.get("/")).status_code == 200
        assert (await server.client.get("/api/chats")).status_code == 200


async def test_an_address_with_a_slash_too_many_is_not_found(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("x"))) as server:
        for path in ("/api/chats/", "/api/chats/%2F", "/chats/x/"):
            assert (await server.client.get(path)).status_code == 404
