"""A chat is deleted on one server while another one runs it."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.kept import Restarts, until
from tests.support.scripted_provider import ScriptedProvider
from web.harness.values.model import TextChunk

pytestmark = [pytest.mark.anyio, pytest.mark.full]


@pytest.mark.parametrize("backend", ["the store", "none"])
async def test_what_it_does_is_stopped_there_and_nothing_of_it_stays(
    stage: Restarts, backend: str
) -> None:
    if backend == "none":
        stage.settings["backend"] = backend
    provider = ScriptedProvider([TextChunk("Half "), asyncio.Event()])
    async with (
        stage.server(provider, undo_seconds=1) as one,
        stage.server(undo_seconds=1) as two,
    ):
        chat = await one.new_chat()
        run = await one.send(chat, "Tell me all")
        await one.wait_for(run, "text_delta")

        async def knows_of_it() -> bool:
            answer = await two.client.get(f"/api/chats/{chat}")
            return answer.is_success and answer.json()["active_run"] == run

        await until(knows_of_it)
        assert (await two.client.delete(f"/api/chats/{chat}")).status_code == 204

        async def is_stopped() -> bool:
            return not provider.open

        await until(is_stopped)

        async def is_gone() -> bool:
            tables = ("records", "sessions", "runs", "events", "executions", "steps")
            return not any(
                [await stage.place.run(f"SELECT 1 FROM harness_{each}") for each in tables]
            )

        await until(is_gone)
