"""Two servers on one PostgreSQL: the same chats, live on both, each run once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.app_server import AppServer, refusal, text_of
from tests.support.kept import Restarts, page_of, restarts, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import new_place
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Restarts]:
    place = await new_place("postgresql", tmp_path)
    yield restarts(place, tmp_path)
    await place.aclose()


async def shows(server: AppServer, chat: str, words: str) -> str:
    """The page of a chat, once it has these words."""

    async def look() -> str:
        page = await page_of(server, chat)
        return page if words in page else ""

    return str(await until(look))


async def test_a_run_of_one_server_is_live_on_the_other_and_the_chat_is_busy_there(
    stage: Restarts,
) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("The first half, "), go_on, TextChunk("the second."), ModelDone("end_turn")]
    )
    other = ScriptedProvider(says("From the other."))
    async with stage.server(provider) as one, stage.server(other) as two:
        chat = await one.new_chat(title="Shared")
        await shows(two, chat, "Shared")
        run = await one.send(chat, "Tell me")
        await shows(two, chat, "The first half,")
        told = await two.chat(chat)
        assert told["active_run"] == run
        answer = await two.client.post(f"/api/chats/{chat}/messages", json={"text": "Me too"})
        assert refusal(answer) == (409, "session_conflict")
        waits = await two.send(chat, "Then me", queue=True)
        go_on.set()
        assert text_of(await two.events(run)) == "The first half, the second."
        await shows(two, chat, "the second.")
        assert text_of(await one.events(waits)) == "From the other." or other.requests == []
        await shows(one, chat, "Then me")
        await shows(two, chat, "Then me")
        assert len(provider.requests) + len(other.requests) == 2


async def test_both_servers_list_what_either_makes_renames_and_deletes(stage: Restarts) -> None:
    async with stage.server() as one, stage.server() as two:
        await two.client.get("/")
        chat = await one.new_chat(title="New here")

        async def listed(words: str) -> bool:
            return words in (await two.client.get("/")).text

        await until(lambda: listed("New here"))
        await one.client.patch(f"/api/chats/{chat}", json={"title": "Renamed"})
        await until(lambda: listed("Renamed"))
        assert not await listed("New here")
        assert "Renamed" in await page_of(two, chat)
        await one.client.patch(f"/api/chats/{chat}", json={"title": "Again"})
        await shows(two, chat, "Again")
        await one.client.delete(f"/api/chats/{chat}")

        async def gone() -> bool:
            return (await two.client.get(f"/chats/{chat}")).status_code == 404

        await until(gone)


async def test_a_question_of_one_server_is_answered_on_the_other_and_a_run_stopped_there(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(calls(WRITE), says("Written."), [TextChunk("On"), asyncio.Event()])
    async with stage.server(provider) as one, stage.server() as two:
        chat = await one.new_chat()
        run = await one.send(chat, "Write")
        key = (await one.wait_for(run, "approval_required")).data["key"]
        await shows(two, chat, "note.txt")
        answer = await two.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"}
        )
        assert answer.status_code == 200, answer.text
        assert text_of(await one.events(run)) == "Written."
        endless = await one.send(chat, "Go on")
        await one.wait_for(endless, "text_delta")

        async def seen() -> bool:
            return bool((await two.chat(chat))["active_run"] == endless)

        await until(seen)
        await two.client.post(f"/api/runs/{endless}/stop")
        last = (await one.events(endless))[-1]
        assert last.data["status"] == "cancelled"


async def test_the_chats_of_a_server_that_died_are_free_within_the_time_of_a_lease(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider([TextChunk("Cut "), asyncio.Event()])
    async with stage.server(ScriptedProvider(says("Free again."))) as two:
        async with stage.server(provider) as one:
            chat = await one.new_chat()
            run = await one.send(chat, "Tell me")
            await one.wait_for(run, "text_delta")
            await shows(two, chat, "Cut")
        events = await two.events(run)
        assert events[-1].data["reason"] == "interrupted"
        await shows(two, chat, "so it is incomplete")
        assert text_of(await two.events(await two.send(chat, "Again"))) == "Free again."
