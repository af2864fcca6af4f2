"""The record of one chat changed on two servers at the same moment: both changes count."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.support.app_server import AppServer
from tests.support.kept import Restarts, at_rest, page_of, shows, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import on

pytestmark = [pytest.mark.anyio, pytest.mark.full, on("sqlite", full="postgresql")]

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


async def draft_of(server: AppServer, chat: str) -> str:
    found = re.search(r'<textarea[^>]*name="text"[^>]*>([^<]*)', await page_of(server, chat))
    return found[1].strip() if found else ""


async def type_in(server: AppServer, chat: str, text: str) -> None:
    await server.client.post(f"/chats/{chat}/draft", data={"text": text})


async def test_a_title_and_a_draft_of_two_servers_at_once_are_both_kept(stage: Restarts) -> None:
    async with stage.server() as one, stage.server() as two:
        chat = await one.new_chat(title="Old")
        await shows(two, chat, "Old")
        for number in range(3):
            title, draft = f"Title {number}", f"Draft {number}"
            await asyncio.gather(
                one.client.patch(f"/api/chats/{chat}", json={"title": title}),
                type_in(two, chat, draft),
            )
            for server in (one, two):
                await shows(server, chat, title)
                await shows(server, chat, draft)
    async with stage.server() as later:
        assert (await later.chat(chat))["title"] == title
        assert await draft_of(later, chat) == draft


async def test_a_chat_that_is_deleted_while_another_server_keeps_its_draft_stays_deleted(
    stage: Restarts,
) -> None:
    async with stage.server() as one, stage.server() as two:
        chat = await one.new_chat(title="To go")
        await shows(two, chat, "To go")
        await asyncio.gather(one.client.delete(f"/api/chats/{chat}"), type_in(two, chat, "typed"))

        async def gone() -> bool:
            found = [await each.client.get(f"/api/chats/{chat}") for each in (one, two)]
            return [each.status_code for each in found] == [404, 404]

        await until(gone)
    async with stage.server() as later:
        assert (await later.client.get(f"/api/chats/{chat}")).status_code == 404


async def test_a_grant_that_is_taken_back_while_another_server_keeps_a_draft_stays_so(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(calls(WRITE), says("Written."), calls(WRITE), says("Again."))
    async with stage.server(provider) as one, stage.server() as two:
        chat = await one.new_chat()
        run = await one.send(chat, "Write")
        key = (await one.wait_for(run, "approval_required")).data["key"]
        await one.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow_chat"})
        await at_rest(one, chat)
        await shows(two, chat, "grants/write_file/revoke")
        await one.client.post(f"/chats/{chat}/grants/write_file/revoke")
        await type_in(two, chat, "typed")  # It has hardly heard of that.
        await shows(one, chat, "typed")

        async def revoked() -> bool:
            return "grants/write_file/revoke" not in await page_of(two, chat)

        await until(revoked)
        run = await one.send(chat, "Once more")
        await one.wait_for(run, "approval_required")
        await one.client.post(f"/api/runs/{run}/stop")
