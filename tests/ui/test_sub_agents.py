"""A sub-agent in a chat, as programs see it: nested events, and questions as any other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.app_server import app_server, text_of
from tests.support.scripted_provider import ScriptedProvider, calls, says

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "sum.txt", "content": "42"})


async def test_its_question_is_listed_shown_whole_and_answered_under_the_run(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(
        calls(("delegate", {"task": "save"})), calls(WRITE), says("Saved."), says("Done.")
    )
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Go")
        async with asyncio.timeout(10), server.stream(run_id) as told:
            asked = await anext(
                event async for event in told if event.data.get("event") == "approval_required"
            )
        (question,) = (await server.chat(chat))["questions"]
        assert (question["name"], question["run_id"]) == ("write_file", run_id)
        assert question["call_id"].startswith(asked.data["call_id"])
        path = f"/api/runs/{run_id}/approvals/{question['key']}"
        whole = (await server.client.get(path)).json()
        assert whole["state"] == "open"
        assert whole["preview"]["kind"] == "diff"
        allowed = await server.client.post(path, json={"decision": "allow"})
        assert allowed.status_code == 200
        events = await server.events(run_id)
        assert text_of(events) == "Done."
        nested = [event.data for event in events if event.type == "nested"]
        (result,) = [data["data"] for data in nested if data["event"] == "tool_result"]
        assert (result["name"], result["decision"]) == ("write_file", "allow")
        (end,) = [event.data for event in events if event.type == "run_result"]
        # Four model calls of 10 tokens in: those of the sub-agent count.
        assert end["usage"]["input_tokens"] == 40
        made = (await server.client.get(f"/api/chats/{chat}/files")).json()
        assert "sum.txt" in str(made)


async def test_the_page_holds_what_it_did_inside_its_call(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        calls(("delegate", {"task": "add"})),
        calls(("calculate", {"expression": "6*7"})),
        says("It is **42**."),
        says("Done."),
    )
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Go")
        await server.wait_for(run_id, "run_result")
        page = (await server.client.get(f"/chats/{chat}")).text
        nested = page[page.index('class="nested-log"') : page.index("Done.")]
        for words in ("calculate", "<strong>42</strong>", 'class="foot"'):
            assert words in nested
        # One sub-agent's foot and the turn's own.
        assert page.count('class="foot"') == 2
