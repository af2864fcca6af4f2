"""Memories over the JSON API: what a program can do with facts and notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider, says

pytestmark = pytest.mark.anyio


async def told(server: AppServer, method: str, path: str, status: int, **sent: Any) -> Any:
    answer = await server.client.request(method, path, json=sent or None)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def test_facts_and_notes_are_added_found_changed_forgotten_and_brought_back(
    tmp_path: Path,
) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        base = f"/api/chats/{await server.new_chat()}/memories"
        assert (await told(server, "GET", base, 200))["memories"] == []
        fact = await told(server, "POST", base, 201, text="Likes tea", tags=["Person"])
        assert (fact["of"], fact["title"], fact["tags"]) == ("fact", "", ["person"])
        note = await told(server, "POST", base, 201, text="a\n\nb", title="Plan", tags=["x", "y"])
        assert (note["of"], note["title"], note["text"]) == ("note", "Plan", "a\n\nb")
        listed = await told(server, "GET", base, 200)
        assert (listed["on"], listed["facts"], listed["notes"]) == (True, 1, 1)
        found = await told(server, "GET", f"{base}?q=plan", 200)
        assert [each["key"] for each in found["memories"]] == [note["key"]]
        for each in (fact, note):
            path = f"{base}/{each['key']}"
            changed = await told(server, "PATCH", path, 200, text="new", seen=each["seen"])
            assert changed["text"] == "new"
            assert changed["tags"] == each["tags"]
            refused = await told(server, "PATCH", path, 409, text="newer", seen=each["seen"])
            assert refused["code"] == "memory_changed"
            await told(server, "DELETE", path, 204)
            assert (await told(server, "GET", path, 404))["code"] == "not_found"
            await told(server, "POST", f"{path}/restore", 204)
            assert (await told(server, "GET", path, 200))["text"] == "new"
            await told(server, "POST", f"{path}/restore", 404)


async def test_a_chat_is_switched_and_what_is_refused_is_told(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        base = f"/api/chats/{await server.new_chat()}/memories"
        assert (await told(server, "PATCH", base, 200, on=False))["on"] is False
        assert (await told(server, "GET", base, 200))["on"] is False
        assert (await told(server, "POST", base, 422, text=" "))["code"] == "memory_refused"
        long = await told(server, "POST", base, 413, text="x" * 4_001)
        assert (long["code"], "4,000" in long["message"]) == ("too_long", True)
        await told(server, "POST", base, 422, text="x", unknown=1)
        await told(server, "GET", f"{base}/nothing", 404)
        await told(server, "GET", "/api/chats/nothing/memories", 404)


async def test_the_chats_of_one_person_share_what_is_remembered(tmp_path: Path) -> None:
    model = ScriptedProvider(says("ok"))
    async with app_server(tmp_path, model) as server:
        one, two = await server.new_chat(), await server.new_chat()
        await told(server, "POST", f"/api/chats/{one}/memories", 201, text="Likes tea")
        listed = await told(server, "GET", f"/api/chats/{two}/memories", 200)
        assert [each["text"] for each in listed["memories"]] == ["Likes tea"]
        run_id = await server.send(two, "Hello")
        await server.wait_for(run_id, "run_result")
        assert "> [general] Likes tea" in model.requests[0].system_prompt
