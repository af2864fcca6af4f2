"""A run of which nobody can read how it stands: the page says so, and it can be left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.kept import Restarts, restarts
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.stores import SqlPlace, new_place
from tests.ui.test_durable_chats import cut_off, rest, shows

pytestmark = [pytest.mark.anyio, pytest.mark.full]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Restarts]:
    place = await new_place("sqlite", tmp_path)
    assert isinstance(place, SqlPlace)
    yield restarts(place, tmp_path)
    await place.aclose()


async def test_a_run_that_cannot_be_read_stands_still_with_words_and_can_be_left(
    stage: Restarts,
) -> None:
    chat, run = await cut_off(stage, "The first half. ", queued="And then?")
    await stage.place.run("UPDATE harness_executions SET state = '{'")
    async with stage.server(ScriptedProvider(says("Nothing."))) as server:
        page = await shows(server, chat, "cannot be read")
        assert "This answer cannot go on as it is" in page
        assert "The first half." in page
        answer = await server.client.post(f"/api/runs/{run}/leave")
        assert answer.status_code == 202, answer.text
        told = await rest(server, chat)
        texts = [each["content"][0]["text"] for each in told["messages"]]
        assert texts == ["Tell me all", "The first half. ", "And then?", "Nothing."]
