"""A run of which nobody can read how it stands: the page says so, and it can be left."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.kept import Restarts, at_rest, shows
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.ui.test_left_runs import ADD
from web.harness.values.model import TextChunk

pytestmark = [pytest.mark.anyio, pytest.mark.full]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE harness_executions SET state = '{'",
        # It is not read before the run goes on.
        "UPDATE harness_steps SET added = '{' WHERE kind = 'begun'",
    ],
)
async def test_a_run_that_cannot_be_read_stands_still_with_words_and_can_be_left(
    stage: Restarts, damage: str
) -> None:
    first = ScriptedProvider(calls(ADD), [TextChunk("The first half. "), asyncio.Event()])
    async with stage.server(first) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        await server.send(chat, "And then?", queue=True)
    await stage.place.run(damage)
    async with stage.server(ScriptedProvider(says("Nothing."))) as server:
        page = await shows(server, chat, "cannot be read")
        assert "This answer cannot go on as it is" in page
        assert "The first half." in page
        answer = await server.client.post(f"/api/runs/{run}/leave")
        assert answer.status_code == 202, answer.text
        told = await at_rest(server, chat)
        last = [each["content"][0]["text"] for each in told["messages"][-3:]]
        assert last == ["The first half. ", "And then?", "Nothing."]
