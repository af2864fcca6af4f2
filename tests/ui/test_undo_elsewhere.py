"""A chat that one server deleted is brought back on another, for as long as the first one could."""

from __future__ import annotations

import pytest

from tests.support.kept import Restarts, page_of, until
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.stores import on

pytestmark = [pytest.mark.anyio, pytest.mark.full, on("sqlite", full="postgresql")]


@pytest.mark.parametrize("is_known", [True, False])
async def test_any_server_brings_a_deleted_chat_back_and_nothing_of_it_is_purged(
    stage: Restarts, is_known: bool
) -> None:
    async with (
        stage.server(ScriptedProvider(says("Well.")), undo_seconds=5) as one,
        stage.server(ScriptedProvider(says("Again.")), undo_seconds=5) as two,
    ):
        chat = await one.new_chat(title="Kept")
        await one.events(await one.send(chat, "hello"))
        other = await one.new_chat(title="Other")
        if is_known:
            assert "Well." in await page_of(two, chat)
        later = await one.new_chat(title="Later")
        for each in (chat, later):
            assert (await one.client.delete(f"/api/chats/{each}")).status_code == 204
        if is_known:

            async def offered() -> bool:
                page = await two.client.get(f"/chats/{other}")
                return f"/chats/{chat}/restore" in page.text

            await until(offered)
        answer = await two.client.post(f"/api/chats/{chat}/restore")
        assert answer.status_code == 200, answer.text
        assert f"/chats/{chat}/restore" not in await page_of(two, other)

        async def time_is_up() -> bool:
            rows = await stage.place.run("SELECT session_id FROM harness_records")
            return (later,) not in [tuple(row) for row in rows]

        await until(time_is_up)
        for server in (one, two):

            async def shown() -> bool:
                answer = await server.client.get(f"/chats/{chat}")  # noqa: B023
                return "Well." in answer.text

            await until(shown)
            assert f"/chats/{chat}/restore" not in await page_of(server, other)
        await two.events(await two.send(chat, "More"))
        assert "Again." in await page_of(two, chat)


async def test_after_the_time_it_is_gone_everywhere(stage: Restarts) -> None:
    async with stage.server(undo_seconds=1) as one, stage.server(undo_seconds=1) as two:
        chat = await one.new_chat(title="Gone")
        assert (await two.client.get(f"/api/chats/{chat}")).status_code == 200
        await one.client.delete(f"/api/chats/{chat}")

        async def is_gone() -> bool:
            return not await stage.place.run("SELECT 1 FROM harness_records")

        await until(is_gone)
        answer = await two.client.post(f"/api/chats/{chat}/restore")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
