"""A store that fails costs words and never the chat: what is new is kept and written later."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.kept import Restarts, page_of, restarts, until
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.stores import SqlPlace, new_place
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Restarts]:
    place = await new_place("sqlite", tmp_path)
    yield restarts(place, tmp_path)
    await place.aclose()


@contextmanager
def locked(place: SqlPlace) -> Iterator[None]:
    """Another program has the database for itself."""
    path = place.address.removeprefix("sqlite:///")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.full
async def test_an_answer_goes_on_when_the_store_works_again_and_the_page_says_so_until_then(
    stage: Restarts,
) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("Before, "), go_on, TextChunk("and after."), ModelDone("end_turn")]
    )
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me")
        await server.wait_for(run, "text_delta")
        with locked(stage.place):
            go_on.set()
            await server.client.post(f"/chats/{chat}/draft", data={"text": "typed meanwhile"})

            async def told() -> bool:
                return "locked the database" in await page_of(server, chat)

            await until(told, 20)
            assert "What is new is kept in memory" in await page_of(server, chat)

        async def whole() -> bool:
            page = await page_of(server, chat)
            idle = (await server.chat(chat))["active_run"] is None
            return idle and "and after." in page and "locked the database" not in page

        await until(whole, 20)
        before = await server.chat(chat)
        assert before["messages"][-1]["content"][0]["text"] == "Before, and after."
    async with stage.server(ScriptedProvider(says("x"))) as server:
        page = await page_of(server, chat)
        assert "and after." in page
        assert "typed meanwhile" in page
        assert (await server.chat(chat))["messages"] == before["messages"]
