"""The model, the tools and the server of the crash demo."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.app_server import app_server, plain_client, served
from web.demos.crash.asked import Asked
from web.demos.crash.ledger import Ledger
from web.demos.crash.served import KILL, make_app, settings_for
from web.demos.crash.story import BEFORE, CALLS, PROMPT, StoryProvider, final_text
from web.demos.crash.tools import Times, crash_tools
from web.harness.tools.tool import ToolContext
from web.harness.values.messages import Message, TextBlock, ToolResultBlock
from web.harness.values.model import ModelDone, ModelRequest, TextChunk

pytestmark = pytest.mark.anyio

AT_ONCE = Times(0, 0)


def asked_for(text: str) -> Message:
    return Message("m", "user", (TextBlock(text),))


async def answer_to(*messages: Message) -> tuple[str, ModelDone]:
    """What a model that was never asked before says."""
    text, done = "", None
    async for chunks in StoryProvider(fast=True).stream(ModelRequest("demo", messages)):
        for chunk in chunks:
            if isinstance(chunk, TextChunk):
                text += chunk.text
            elif isinstance(chunk, ModelDone):
                done = chunk
    assert done is not None
    return text, done


async def test_any_process_can_go_on_with_the_story() -> None:
    text, done = await answer_to(asked_for(PROMPT))
    assert text == BEFORE
    assert [(use.name, use.arguments) for use in done.tool_uses] == list(CALLS)
    results = {use.name: f"result of {use.name}" for use in done.tool_uses}
    more = [
        Message("a", "assistant", (TextBlock(text), *done.tool_uses)),
        Message(
            "t",
            "tool",
            tuple(
                ToolResultBlock(use.id, (TextBlock(f"{results[use.name]}\nand more"),))
                for use in done.tool_uses
            ),
        ),
    ]
    text, done = await answer_to(asked_for(PROMPT), *more)
    assert text == final_text(results)
    assert done.tool_uses == ()


async def test_what_is_no_story_is_answered_by_the_demo_model() -> None:
    text, _ = await answer_to(asked_for("refuse"))
    assert "decline" in text


async def test_a_measurement_that_was_cut_off_goes_on_after_its_last_reading(
    tmp_path: Path,
) -> None:
    ledger = Ledger(tmp_path / "began")
    measure = next(tool for tool in crash_tools(ledger, AT_ONCE) if tool.name == "measure_basin")
    readings: list[float] = []
    arguments = {"basin": "east", "readings": 5}

    class CutOff(Exception):
        pass

    def progress(done: float, total: float | None, message: str) -> None:
        readings.append(done)
        if len(readings) == 2:
            raise CutOff

    with pytest.raises(CutOff):
        await measure.handler(arguments, ToolContext("key", progress=progress))
    output = await measure.handler(arguments, ToolContext("key", progress=progress))
    assert output.text == "east: 5 readings, 7.4 m deep"
    assert readings == [1, 2, 3, 4, 5]
    assert ledger.began() == {("measure_basin", "key"): 2}


async def test_only_a_page_of_the_demo_can_kill_its_server(tmp_path: Path) -> None:
    """Were the refusals none, this process would be gone."""
    asked = Asked(f"sqlite:///{tmp_path / 'chats.db'}", 0, str(tmp_path), "the token")
    async with (
        served(make_app(asked, settings_for(asked))) as address,
        plain_client(address) as client,
    ):
        page = (await client.get("/")).text
        assert f'hx-post="{KILL}"' in page
        assert '<input type="hidden" name="token" value="the token">' in page
        for fields in ({}, {"token": "another"}):
            assert refusal_of(await client.post(KILL, data=fields)) == "stale_page"
        assert (await client.get(KILL)).status_code == 405
        stranger = {"origin": "http://elsewhere.example"}
        refused = await client.post(KILL, data={"token": "the token"}, headers=stranger)
        assert refused.status_code == 403


def refusal_of(answer: httpx.Response) -> str:
    assert answer.is_client_error
    return "stale_page" if "older than the server" in answer.text else answer.text


async def test_no_other_server_can_be_killed_from_its_page(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        page = (await server.client.get("/")).text
        assert "Kill the server" not in page
        answer = await server.client.post(KILL, headers={"accept": "application/json"})
        assert answer.status_code == 404
