"""Answers whose workflow ends without them: they stand still, or end, and the page says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.app_server import app_server, text_of
from tests.support.kept import page_of, until
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.temporal_runs import TemporalPlace
from web.harness.runtime.backend import Turn
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.sessions.journal import Execution
from web.harness.values.errors import HarnessError
from web.harness.values.model import TextChunk

pytestmark = [pytest.mark.anyio, pytest.mark.full]


async def test_an_answer_whose_workflow_is_terminated_says_so_and_goes_on_when_told(
    tmp_path: Path,
) -> None:
    place = TemporalPlace(tmp_path)
    provider = ScriptedProvider([TextChunk("Half. "), asyncio.Event()], says("All of it."))
    async with app_server(tmp_path, provider, settings={"backend": place.address}) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        await (await place.workflow(run)).terminate()

        async def stands_still() -> bool:
            return "ended from outside" in await page_of(server, chat)

        assert await until(stands_still, 20)
        assert (await server.status(run))["state"] == "paused"
        answer = await server.client.post(f"/api/runs/{run}/resume")
        assert answer.status_code == 202, answer.text
        events = await server.events(run)
        assert text_of(events).endswith("All of it.")
        assert events[-1].data["status"] == "completed"


@pytest.mark.parametrize(
    ("code", "state", "shown"),
    [("runtime_differs", "paused", "cannot go on as it is"), ("worker_full", "ended", "Failed")],
)
async def test_an_answer_that_no_worker_can_perform_says_why(
    tmp_path: Path, code: str, state: str, shown: str
) -> None:
    """One that another worker could perform stands still, any other fails."""
    place = TemporalPlace(tmp_path)
    refusal = HarnessError("The saw is missing.", hint="Bring one.", code=code)

    @asynccontextmanager
    async def crew(execution: Execution) -> AsyncIterator[Turn]:
        raise refusal
        yield

    working = TemporalBackend(place.address)
    provider = ScriptedProvider(says("Never."))
    async with (
        working.working(crew, grace=0),
        app_server(tmp_path, provider, settings={"backend": place.address}) as server,
    ):
        chat = await server.new_chat()
        run = await server.send(chat, "Saw it")

        async def told() -> bool:
            return "The saw is missing." in await page_of(server, chat)

        assert await until(told, 20)
        assert shown in await page_of(server, chat)
        assert (await server.status(run))["state"] == state
    await working.aclose()
    assert provider.requests == []
