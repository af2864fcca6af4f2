"""Chats that nobody uses leave the memory, and nobody can tell."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import MODELS, AppServer, plain_client, served, text_of
from tests.support.kept import page_of, until
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.app import create_app
from web.chats.registry.chats import Chats
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import open_stores
from web.harness.sessions.records import Record
from web.harness.values.model import ModelDone, TextChunk
from web.server_limits import ServerLimits
from web.settings import Settings

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


@asynccontextmanager
async def a_server(
    folder: Path, provider: ScriptedProvider, **limits: int
) -> AsyncIterator[tuple[AppServer, Chats]]:
    """A server with a store, and its chats, which rest for no time at all."""
    settings = Settings(
        data_dir=folder,
        store=f"sqlite:///{folder / 'chats.sqlite3'}",
        model=MODELS,
        limits=ServerLimits(**limits),
    )
    app = create_app(settings, providers=lambda name: provider)
    loading: Any = next(each for each in app.user_middleware if "services" in each.kwargs)
    services = loading.kwargs["services"]
    services.chats.rest_seconds = 0
    async with served(app) as address, plain_client(address) as client:
        yield AppServer(address, client), services.chats


async def settled(server: AppServer, chat: str) -> None:
    async def idle() -> bool:
        return (await server.chat(chat))["active_run"] is None

    await until(idle)


async def unloaded(chats: Chats, chat: str) -> None:
    """Returns when a chat has left the memory: what it did last may have to be written first."""

    async def gone() -> bool:
        await chats.unload(0)
        return chats.channel(LOCAL_IDENTITY, chat) is None

    await until(gone)


async def cursor_of(server: AppServer, chat: str) -> str:
    page = (await server.client.get(f"/chats/{chat}")).text
    found = re.search(r'<body data-epoch="([0-9a-f]+)" data-version="(\d+)"', page)
    assert found is not None
    return f"{found[1]}:{found[2]}"


async def changes(server: AppServer, chat: str, after: str) -> dict[str, Any]:
    address = f"/changes?channels=chats,{chat}&after={after}"
    return dict((await server.client.get(address)).json())


async def test_a_chat_that_left_the_memory_between_two_looks_is_as_it_was(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        calls(WRITE, text="I write it."),
        says("**Written**, as a list:\n\n- one\n- two"),
        calls(WRITE, text="Once more."),
        says("Done again."),
    )
    async with a_server(tmp_path, provider) as (server, chats):
        chat = await server.new_chat()
        run = await server.send(chat, "Write a note", request_id="mine")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        decided = {"decision": "allow_chat"}
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json=decided)
        events = await server.events(run)
        await server.client.post(f"/chats/{chat}/draft", data={"text": "half a thought"})
        picture = {"files": ("plan.png", png(4, 3), "image/png")}
        await server.client.post(f"/chats/{chat}/uploads", files=picture)
        await settled(server, chat)
        before, told = await page_of(server, chat), await server.chat(chat)
        assert "half a thought" in before
        assert "plan.png" in before
        cursor = await cursor_of(server, chat)
        await unloaded(chats, chat)

        # The page that comes back gets all of it, and nothing that is on it stays beside it.
        frame = await changes(server, chat, cursor)
        found = [each for each in frame["channels"] if each["name"] == chat]
        assert [each["full"] for each in found] == [True]
        shown = "".join(part["html"] for part in found[0]["parts"])
        assert shown.count("I write it.") == 1
        assert await page_of(server, chat) == before
        assert await server.chat(chat) == told
        assert await server.events(run) == events
        # What was asked for by the same request is the same, and what was allowed still is.
        assert await server.send(chat, "Write a note", request_id="mine") == run
        await unloaded(chats, chat)
        again = await server.send(chat, "Once more")
        types = [event.type for event in await server.events(again)]
        assert "approval_required" not in types
        await settled(server, chat)
        assert len((await server.chat(chat))["messages"]) == 2 * len(told["messages"])
        whole = await page_of(server, chat)
        assert whole.count("Done again.") == 1
        await unloaded(chats, chat)
        assert await page_of(server, chat) == whole


async def test_a_chat_that_is_in_use_stays_in_memory(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("Half "), go_on, TextChunk("and half."), ModelDone("end_turn")], says("Next.")
    )
    async with a_server(tmp_path, provider) as (server, chats):
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me")
        await server.wait_for(run, "text_delta")
        waits = await server.send(chat, "And then?", queue=True)
        await chats.unload(0)
        assert chats.channel(LOCAL_IDENTITY, chat) is not None
        go_on.set()
        await server.events(run)
        assert text_of(await server.events(waits)) == "Next."
        await settled(server, chat)
        cursor = await cursor_of(server, chat)
        address = f"/stream?channels=chats,{chat}&after={cursor}"
        async with server.client.stream("GET", address) as stream:
            await anext(stream.aiter_lines())
            await chats.unload(0)
            assert chats.channel(LOCAL_IDENTITY, chat) is not None
        await unloaded(chats, chat)


async def test_a_chat_that_can_be_brought_back_stays_in_memory_until_then(tmp_path: Path) -> None:
    async with a_server(tmp_path, ScriptedProvider(says("ok"))) as (server, chats):
        chat = await server.new_chat(title="Kept")
        await server.client.delete(f"/api/chats/{chat}")
        await chats.unload(0)
        assert (await server.client.post(f"/api/chats/{chat}/restore")).status_code == 200
        await unloaded(chats, chat)
        assert (await server.chat(chat))["title"] == "Kept"


async def test_more_chats_than_fit_into_memory_are_made_and_all_are_there(tmp_path: Path) -> None:
    async with a_server(tmp_path, ScriptedProvider(says("ok")), max_chats=3) as (server, chats):
        made = [await server.new_chat(title=f"chat {number}") for number in range(8)]
        assert len(chats.list(LOCAL_IDENTITY)) <= 3
        listed = (await server.client.get("/api/chats")).json()
        assert {each["id"] for each in listed} == set(made)
        for number, chat in enumerate(made):
            assert (await server.chat(chat))["title"] == f"chat {number}"
        page = (await server.client.get("/")).text
        assert all(f"chat {number}" in page for number in range(8))


async def test_of_a_chat_that_left_the_memory_only_the_id_is_held_by_its_request(
    tmp_path: Path,
) -> None:
    async with a_server(tmp_path, ScriptedProvider(says("ok"))) as (server, chats):
        chat = await server.new_chat(request_id="mine")
        await unloaded(chats, chat)
        assert list(chats._made.values()) == [chat]
        assert await server.new_chat(request_id="mine") == chat


async def test_nothing_of_a_chat_that_another_server_deleted_for_good_is_held(
    tmp_path: Path,
) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'chats.sqlite3'}", now=lambda: 12.5)
    async with a_server(tmp_path, ScriptedProvider(says("ok"))) as (server, chats):
        chat = await server.new_chat()
        run = await server.send(chat, "Hi")
        await server.events(run)
        await page_of(server, chat)
        await settled(server, chat)
        await stores.records.delete(LOCAL_IDENTITY, chat)

        async def forgotten() -> bool:
            return chats.channel(LOCAL_IDENTITY, chat) is None

        await until(forgotten)
        assert chats._turns.find(run) is None
        assert not chats.files._held
    await stores.aclose()


async def test_a_chat_that_was_loaded_before_its_person_came_follows_other_servers(
    tmp_path: Path,
) -> None:
    stores = await open_stores(f"sqlite:///{tmp_path / 'chats.sqlite3'}", now=lambda: 12.5)
    record = Record("0" * 16, 1.0, {"model": "openai:one", "title": "Old"})
    await stores.records.put(LOCAL_IDENTITY, record)
    async with a_server(tmp_path, ScriptedProvider(says("ok"))) as (_, chats):
        # As where a server takes over what another one left.
        await chats.load(LOCAL_IDENTITY, record.session_id)
        await stores.records.put(
            LOCAL_IDENTITY, Record(record.session_id, 1.0, {**record.body, "title": "New"})
        )

        async def follows() -> bool:
            return chats.get(LOCAL_IDENTITY, record.session_id).title == "New"

        await until(follows)
    await stores.aclose()
