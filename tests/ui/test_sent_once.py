"""What goes with a message goes once, also where a server is killed before its record says so."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.app_server import AppServer
from tests.support.kept import Restarts, at_rest, page_of
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.stores import on

pytestmark = [pytest.mark.anyio, on("sqlite", full="postgresql")]

SCRIPT = {"HX-Request": "true"}
TEXT = "What is on it?"


async def box_of(server: AppServer, chat: str) -> str:
    found = re.search(r'<textarea[^>]*name="text"[^>]*>([^<]*)', await page_of(server, chat))
    return found[1].strip() if found else ""


async def type_in(server: AppServer, chat: str, text: str) -> None:
    answer = await server.client.post(f"/chats/{chat}/draft", data={"text": text})
    assert answer.status_code == 204, answer.text


async def send(server: AppServer, chat: str, text: str, draft: str = "") -> None:
    fields = {"text": text, "draft": draft}
    address = f"/chats/{chat}/messages"
    answer = await server.client.post(address, data=fields, headers=SCRIPT)
    assert answer.status_code == 200, answer.text
    await at_rest(server, chat)


async def killed(stage: Restarts, draft: str) -> str:
    """A chat whose server was killed when a message was stored, and its record not yet."""
    async with stage.server(ScriptedProvider(says("A plan."))) as server:
        chat = await server.new_chat()
        files = {"files": ("plan.png", png(40, 30), "image/png")}
        await server.client.post(f"/chats/{chat}/uploads", files=files)
        await type_in(server, chat, draft)
        assert f"/chats/{chat}/attachments" in await page_of(server, chat)
        ((body, place),) = await stage.place.run("SELECT body, place FROM harness_records")
        assert json.loads(body)["attachments"]
        await send(server, chat, TEXT, draft)
    # As it was when the message was stored.
    row = body.replace("'", "''")
    await stage.place.run(f"UPDATE harness_records SET body = '{row}', place = {place}")
    return chat


@pytest.mark.parametrize("draft", [TEXT, pytest.param("What is", marks=pytest.mark.full)])
async def test_what_went_before_a_server_was_killed_is_not_there_to_go_again(
    stage: Restarts, draft: str
) -> None:
    chat = await killed(stage, draft)
    provider = ScriptedProvider(says("Yes."))
    async with stage.server(provider) as server:
        assert await box_of(server, chat) == ""
        assert f"/chats/{chat}/attachments" not in await page_of(server, chat)
        await send(server, chat, "Really?")
        newest = provider.requests[-1].messages[-1]
        assert [block.type for block in newest.content] == ["text"]


@pytest.mark.full
async def test_the_same_words_that_are_typed_after_that_stay(stage: Restarts) -> None:
    chat = await killed(stage, TEXT)
    async with stage.server() as server:
        await type_in(server, chat, TEXT)
    async with stage.server() as server:
        assert await box_of(server, chat) == TEXT


async def test_what_is_typed_stays_where_somebody_else_sends(stage: Restarts) -> None:
    provider = ScriptedProvider(*(says("Yes.") for _ in range(3)))
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        await type_in(server, chat, "half a thought")
        await server.send(chat, "by a program")
        await at_rest(server, chat)
        assert await box_of(server, chat) == "half a thought"
        await send(server, chat, "in another tab")
        assert await box_of(server, chat) == "half a thought"
        await send(server, chat, "half a thought more", "half a thought")
        assert await box_of(server, chat) == ""
