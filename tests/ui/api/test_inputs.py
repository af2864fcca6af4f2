"""A tool that asks for input, answered through the API and by the page's form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.app_server import refusal
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, ToolServer, tool_server
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "title": "<b>How many", "maximum": 9},
        "<i>": {"enum": ["<u>a", "b"], "title": '"><script>'},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
    },
    "required": ["count"],
}
FORM: JsonObject = {"mode": "form", "server": "s", "message": "How many?", "schema": SCHEMA}


@asynccontextmanager
async def asking(times: int = 1) -> AsyncIterator[tuple[ToolServer, str, str]]:
    """A server, a chat, and its run whose tool asks so many things at once."""

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        answers = await asyncio.gather(*(context.ask(FORM) for _ in range(times)))
        return ToolOutput.of("; ".join(f"{each.action} {each.content}" for each in answers))

    def tools(keep: object) -> list[Tool]:
        allowed = PermissionLevel.ALLOW
        return [Tool("order", "Orders.", {"type": "object"}, handle, permission=allowed)]

    provider = ScriptedProvider(calls(("order", {})), says("done"))
    async with tool_server(provider, tools) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "hello")
        await server.wait_for(run_id, "input_required")
        yield server, chat, run_id


async def result(server: ToolServer, run_id: str) -> str:
    events = await server.events(run_id)
    (told,) = [event.data["text"] for event in events if event.type == "tool_result"]
    return str(told)


async def test_an_open_request_is_told_and_answered_once() -> None:
    async with asking() as (server, chat, run_id):
        whole = await server.chat(chat)
        assert (whole["state"], (await server.status(run_id))["state"]) == ("asking", "asking")
        (asked,) = whole["inputs"]
        assert (asked["name"], asked["run_id"], asked["request"]) == ("order", run_id, FORM)
        path = f"/api/runs/{run_id}/inputs/{asked['key']}"
        for content, words in (({"count": 10}, "out of range"), ({}, "needed"), (None, "needed")):
            answer = await server.client.post(path, json={"action": "accept", "content": content})
            assert refusal(answer) == (422, "invalid_arguments")
            assert words in answer.json()["message"]
        fine = {"action": "accept", "content": {"count": 3, "<i>": "b", "colours": ["blue"]}}
        stranger = await server.client.post(path, json=fine, headers={USER: "other"})
        assert refusal(stranger) == (404, "not_found")
        answers = await asyncio.gather(*(server.client.post(path, json=fine) for _ in range(4)))
        assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
        assert await result(server, run_id) == f"accept {fine['content']}"
        late = await server.client.post(path, json={"action": "decline"})
        assert refusal(late) == (409, "decision_refused")
        assert (await server.chat(chat))["inputs"] == []


@pytest.mark.parametrize("body", [{}, {"action": "yes"}, {"action": "accept", "content": [1]}])
async def test_an_answer_of_another_shape_is_refused(body: Any) -> None:
    async with asking() as (server, chat, run_id):
        (asked,) = (await server.chat(chat))["inputs"]
        path = f"/api/runs/{run_id}/inputs/{asked['key']}"
        assert refusal(await server.client.post(path, json=body)) == (422, "invalid_request")
        other = await server.client.post(f"{path}0", json={"action": "decline"})
        assert refusal(other) == (409, "decision_refused")


async def test_stopping_the_run_closes_what_is_open() -> None:
    async with asking(times=2) as (server, chat, run_id):
        assert len((await server.chat(chat))["inputs"]) == 2
        await server.client.post(f"/api/runs/{run_id}/stop")
        events = await server.events(run_id)
        actions = [event.data["action"] for event in events if event.type == "input_answered"]
        assert actions == ["withdrawn", "withdrawn"]
        assert (await server.chat(chat))["inputs"] == []


async def test_the_form_of_the_page_is_escaped_checked_and_kept() -> None:
    async with asking() as (server, chat, run_id):
        (asked,) = (await server.chat(chat))["inputs"]
        page = (await server.client.get(f"/chats/{chat}")).text
        for raw in ("<b>How", "<script>", "<u>a"):
            assert raw not in page.partition('class="ask-card"')[2].partition("</section>")[0]
        path = f"/chats/{chat}/inputs/{asked['key']}"
        typed = {"action": "accept", "f0": "<b>", "f1": "1", "f2": ["0", "1"]}
        html = {"accept": "text/html"}
        plain = await server.client.post(path, data=typed, headers=html)
        assert plain.status_code == 422
        assert 'value="&lt;b&gt;"' in plain.text
        assert plain.text.count("checked") == 2
        assert "It has to be a whole number." in plain.text
        scripted = await server.client.post(path, data=typed, headers={"hx-request": "true"})
        assert scripted.status_code == 422
        assert scripted.text.count("hx-swap-oob") == 3
        assert scripted.text.count("It has to be a whole number.") == 1
        unknown = await server.client.post(path, data={"action": "x"}, headers=html)
        assert unknown.status_code == 422
        good = await server.client.post(path, data={**typed, "f0": "4"}, headers=html)
        assert (good.status_code, good.headers["location"]) == (303, f"/chats/{chat}")
        content = {"count": 4, "<i>": "b", "colours": ["red", "blue"]}
        assert await result(server, run_id) == f"accept {content}"
        late = {**typed, "f0": "a long <story>"}
        again = await server.client.post(path, data=late, headers=html)
        assert again.status_code == 409
        # It cannot be sent any more, but it is not lost.
        assert "a long &lt;story&gt;" in again.text
