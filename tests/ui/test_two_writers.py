"""The record of one chat changed on two servers at the same moment: both changes count."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.app_server import AppServer
from tests.support.kept import Restarts, at_rest, page_of, shows, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import on
from tests.ui.test_durable_chats import another_server
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import Stores
from web.harness.sessions.records import Record
from web.harness.values.model import TextChunk

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


def changed(title: str, **body: Any) -> Callable[[Record | None], Record | None]:
    """What another server makes of the record of a chat."""

    def change(row: Record | None) -> Record | None:
        return None if row is None else replace(row, body={**row.body, "title": title, **body})

    return change


async def body_of(other: Stores, chat: str) -> dict[str, Any]:
    row = await other.records.get(LOCAL_IDENTITY, chat)
    assert row is not None
    return row.body


async def test_what_a_server_hears_of_anothers_run_is_not_written_back_as_it_was(
    stage: Restarts,
) -> None:
    async with another_server(stage) as other, stage.server() as server:
        chat = await server.new_chat()
        # It begins a run, of which nothing else is heard yet.
        working = changed("Theirs", state="working")
        await other.records.update(LOCAL_IDENTITY, chat, working)
        await shows(server, chat, "Theirs")
        await other.records.update(LOCAL_IDENTITY, chat, changed("Theirs again"))
        await shows(server, chat, "Theirs again")
        assert (await body_of(other, chat))["state"] == "working"


async def test_whoever_runs_a_chat_has_the_last_word_on_what_it_is_at(stage: Restarts) -> None:
    provider = ScriptedProvider([TextChunk("Half "), asyncio.Event()])
    async with another_server(stage) as other, stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me")
        await server.wait_for(run, "text_delta")
        await other.records.update(LOCAL_IDENTITY, chat, changed("Theirs", state="idle"))

        async def is_working() -> bool:
            body = await body_of(other, chat)
            return (body["state"], body["title"]) == ("working", "Theirs")

        await until(is_working)


async def test_a_server_that_one_connects_and_one_that_another_does_are_both_kept(
    stage: Restarts,
) -> None:
    wiki = {"name": "wiki", "needed": [], "entry": {"type": "http", "url": "http://127.0.0.1:9/w"}}
    async with another_server(stage) as other, stage.server() as server:
        chat = await server.new_chat()
        await page_of(server, chat)
        await other.records.update(LOCAL_IDENTITY, chat, changed("Theirs", servers=[wiki]))
        await shows(server, chat, "Theirs")
        mine = {"name": "mine", "url": "http://127.0.0.1:9/mcp"}
        answer = await server.client.post(f"/api/chats/{chat}/servers", json=mine)
        assert answer.status_code == 202, answer.text

        async def kept() -> list[str]:
            return [each["name"] for each in (await body_of(other, chat))["servers"]]

        async def mine_is_kept() -> bool:
            return "mine" in await kept()

        await until(mine_is_kept)
        assert await kept() == ["wiki", "mine"]
        listed = (await server.client.get(f"/api/chats/{chat}/servers")).json()
        key = next(each["key"] for each in listed if each["name"] == "mine")
        await server.client.delete(f"/api/chats/{chat}/servers/{key}")

        async def mine_is_gone() -> bool:
            return "mine" not in await kept()

        await until(mine_is_gone)
        assert await kept() == ["wiki"]
