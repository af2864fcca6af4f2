"""What a tool returned besides text is served to its own chat, and never as something that runs."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.app_server import refusal
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, ToolServer, tool_server
from web.harness.tools.tool import (
    Blob,
    KeepBlob,
    PermissionLevel,
    Tool,
    ToolContext,
    ToolOutput,
)
from web.harness.values.events import ResultPart
from web.harness.values.messages import JsonObject, TextBlock

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))


def blob(content: bytes = PNG, media_type: str = "image/png") -> Blob:
    return Blob(hashlib.sha256(content).hexdigest(), media_type, content)


def painter(keep: KeepBlob) -> list[Tool]:
    """A tool that returns a picture."""

    async def paint(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        made = blob()
        keep(made)
        part = ResultPart(
            "image", media_type=made.media_type, size=len(made.data), sha256=made.sha256
        )
        return ToolOutput((TextBlock("[image image/png]"),), parts=(part,))

    schema = {"type": "object", "properties": {}}
    return [Tool("paint", "Paints.", schema, paint, PermissionLevel.ALLOW, hints=("read-only",))]


async def painted(server: ToolServer) -> tuple[str, str]:
    """A chat in which a picture was painted, and the run that did it."""
    chat = await server.new_chat()
    run_id = await server.send(chat, "Paint")
    await server.wait_for(run_id, "run_result")
    return chat, run_id


async def test_a_picture_that_a_tool_returned_is_on_the_page_and_behind_its_address() -> None:
    provider = ScriptedProvider(calls(("paint", {})), says("There."))
    async with tool_server(provider, painter) as server:
        chat, run_id = await painted(server)
        address = f"/chats/{chat}/blobs/{blob().sha256}"
        page = (await server.client.get(f"/chats/{chat}")).text
        assert f'<img src="{address}"' in page
        assert "read-only" in page
        answer = await server.client.get(address)
        assert (answer.status_code, answer.content) == (200, PNG)
        result = await server.wait_for(run_id, "tool_result")
        assert result.data["text"] == "[image image/png]"
        [part] = result.data["parts"]
        assert (part["kind"], part["sha256"]) == ("image", blob().sha256)
        assert (await server.wait_for(run_id, "tool_call_start")).data["hints"] == ["read-only"]


async def test_a_picture_is_for_the_person_of_its_chat_alone() -> None:
    provider = ScriptedProvider(calls(("paint", {})), says("There."))
    async with tool_server(provider, painter) as server:
        chat, _ = await painted(server)
        other = await server.new_chat()
        sha256 = blob().sha256
        for path, user in (
            (f"/chats/{chat}/blobs/{sha256}", "somebody else"),
            (f"/chats/{other}/blobs/{sha256}", "local"),
            (f"/chats/nowhere/blobs/{sha256}", "local"),
            (f"/chats/{chat}/blobs/{'0' * 64}", "local"),
        ):
            answer = await server.client.get(path, headers={USER: user})
            assert refusal(answer) == (404, "not_found")
        await server.client.delete(f"/api/chats/{chat}")
        assert refusal(await server.client.get(f"/chats/{chat}/blobs/{sha256}")) == (
            404,
            "not_found",
        )


@pytest.mark.parametrize(
    ("media_type", "served_as", "place"),
    [
        ("image/png", "image/png", "inline"),
        ("audio/mpeg", "audio/mpeg", "inline"),
        ("image/svg+xml", "application/octet-stream", "attachment"),
        ("text/html", "application/octet-stream", "attachment"),
        ("application/pdf", "application/octet-stream", "attachment"),
        ("image/png\r\nx-evil: 1", "application/octet-stream", "attachment"),
        ("", "application/octet-stream", "attachment"),
    ],
)
async def test_only_types_that_no_browser_runs_are_shown(
    media_type: str, served_as: str, place: str
) -> None:
    kept = blob(b"<script>alert(1)</script>", media_type)
    async with tool_server(ScriptedProvider(says("x")), painter) as server:
        chat = await server.new_chat()
        server.chat_here(chat).blobs.keep(kept)
        answer = await server.client.get(f"/chats/{chat}/blobs/{kept.sha256}")
        headers = answer.headers
        assert headers["content-type"] == served_as
        assert headers["content-disposition"].split(";")[0] == place
        policy = headers["content-security-policy"].split("; ")
        assert policy == ["default-src 'none'", "style-src 'unsafe-inline'", "sandbox"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "private, no-cache"
        assert "x-evil" not in headers


@pytest.mark.parametrize(
    ("asked", "status", "first", "last"),
    [
        ("bytes=0-9", 206, 0, 9),
        ("bytes=90-", 206, 90, 99),
        ("bytes=90-500", 206, 90, 99),
        ("bytes=-10", 206, 90, 99),
        ("bytes=-500", 206, 0, 99),
        ("bytes=100-", 416, 0, -1),
        ("bytes=9-3", 416, 0, -1),
        ("bytes=-0", 416, 0, -1),
        ("bytes=-", 200, 0, 99),
        ("bytes=0-1,5-6", 200, 0, 99),
        ("lines=1-2", 200, 0, 99),
    ],
)
async def test_a_player_may_ask_for_a_range(asked: str, status: int, first: int, last: int) -> None:
    async with tool_server(ScriptedProvider(says("x")), painter) as server:
        chat = await server.new_chat()
        server.chat_here(chat).blobs.keep(blob())
        path = f"/chats/{chat}/blobs/{blob().sha256}"
        answer = await server.client.get(path, headers={"range": asked})
        assert (answer.status_code, answer.content) == (status, PNG[first : last + 1])
        if status == 206:
            assert answer.headers["content-range"] == f"bytes {first}-{last}/100"


async def test_a_picture_that_a_browser_has_is_not_sent_again() -> None:
    async with tool_server(ScriptedProvider(says("x")), painter) as server:
        chat = await server.new_chat()
        server.chat_here(chat).blobs.keep(blob())
        path = f"/chats/{chat}/blobs/{blob().sha256}"
        tag = (await server.client.get(path)).headers["etag"]
        again = await server.client.get(path, headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b"")
