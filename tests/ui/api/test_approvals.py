"""A tool that asks, answered through the API: once, by the right question, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.harness.skills.writers import put
from tests.support.app_server import AppServer, app_server, refusal, text_of
from tests.support.scripted_provider import ScriptedProvider, calls, says

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


async def test_an_allowed_call_runs_once(tmp_path: Path) -> None:
    async with asking(tmp_path) as (server, chat, run_id):
        whole = await server.chat(chat)
        assert (whole["state"], (await server.status(run_id))["state"]) == ("asking", "asking")
        (question,) = whole["questions"]
        assert (question["name"], question["arguments"]) == WRITE
        assert question["run_id"] == run_id
        assert question["preview"]["kind"] == "diff"
        path = f"/api/runs/{run_id}/approvals/{question['key']}"
        allowed = await server.client.post(path, json={"decision": "allow"})
        assert allowed.status_code == 200
        events = await server.events(run_id)
        assert text_of(events) == "done"
        (result,) = [event.data for event in events if event.type == "tool_result"]
        assert (result["is_error"], result["decision"]) == (False, "allow")
        assert written(tmp_path) == {"note.txt": "hello"}
        # Once means once: again, and after the run has ended, it is refused.
        assert refusal(await server.client.post(path, json={"decision": "allow"})) == (
            409,
            "decision_refused",
        )
        assert (await server.chat(chat))["questions"] == []


async def test_two_answers_at_once_count_as_one(tmp_path: Path) -> None:
    async with asking(tmp_path) as (server, chat, run_id):
        (question,) = (await server.chat(chat))["questions"]
        path = f"/api/runs/{run_id}/approvals/{question['key']}"
        answers = await asyncio.gather(
            *(server.client.post(path, json={"decision": "allow"}) for _ in range(5))
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
        events = await server.events(run_id)
        assert [event.type for event in events].count("tool_call_start") == 1


async def test_a_denied_call_does_not_run_and_the_model_reads_why(tmp_path: Path) -> None:
    async with asking(tmp_path) as (server, chat, run_id):
        (question,) = (await server.chat(chat))["questions"]
        await server.client.post(
            f"/api/runs/{run_id}/approvals/{question['key']}",
            json={"decision": "deny", "reason": "Not on a Sunday."},
        )
        (result,) = [e.data for e in await server.events(run_id) if e.type == "tool_result"]
        assert (result["is_error"], result["decision"]) == (True, "deny")
        assert "Not on a Sunday." in result["text"]
        assert written(tmp_path) == {}


async def test_a_call_runs_with_the_arguments_that_were_edited(tmp_path: Path) -> None:
    async with asking(tmp_path) as (server, chat, run_id):
        (question,) = (await server.chat(chat))["questions"]
        path = f"/api/runs/{run_id}/approvals/{question['key']}"
        wrong = await server.client.post(path, json={"decision": "allow", "arguments": {"path": 1}})
        assert refusal(wrong) == (422, "invalid_arguments")
        assert (await server.chat(chat))["questions"] == [question]
        edited = {"path": "other.txt", "content": "changed"}
        right = await server.client.post(path, json={"decision": "allow", "arguments": edited})
        assert right.status_code == 200
        events = await server.events(run_id)
        (start,) = [event.data for event in events if event.type == "tool_call_start"]
        assert (start["arguments"], start["edited"]) == (edited, True)
        assert written(tmp_path) == {"other.txt": "changed"}


async def test_a_tool_allowed_for_the_chat_asks_no_more(tmp_path: Path) -> None:
    provider = ScriptedProvider(calls(WRITE), says("one"), calls(WRITE), says("two"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        question = await server.wait_for(run_id, "approval_required")
        await server.client.post(
            f"/api/runs/{run_id}/approvals/{question.data['key']}", json={"decision": "allow_chat"}
        )
        assert text_of(await server.events(run_id)) == "one"
        events = await server.events(await server.send(chat, "again"))
        assert text_of(events) == "two"
        assert "approval_required" not in [event.type for event in events]


async def test_an_answer_to_another_run_or_another_question_is_refused(tmp_path: Path) -> None:
    async with asking(tmp_path) as (server, chat, run_id):
        (question,) = (await server.chat(chat))["questions"]
        other = await server.send(await server.new_chat(), "elsewhere")
        await server.wait_for(other, "run_result")
        allow = {"decision": "allow"}

        async def answer(run: str, key: str) -> tuple[int, str]:
            path = f"/api/runs/{run}/approvals/{key}"
            return refusal(await server.client.post(path, json=allow))

        assert await answer(other, question["key"]) == (409, "decision_refused")
        assert await answer(run_id, "nope") == (409, "decision_refused")
        assert await answer("nope", question["key"]) == (404, "not_found")
        assert (await server.chat(chat))["questions"] == [question]
        await server.client.post(f"/api/runs/{run_id}/stop")
        await server.events(run_id)
        assert await answer(run_id, question["key"]) == (409, "decision_refused")


async def test_an_answer_to_an_earlier_run_of_the_chat_is_refused(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("first"), calls(WRITE), says("done"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        earlier = await server.send(chat, "one")
        await server.events(earlier)
        question = await server.wait_for(await server.send(chat, "two"), "approval_required")
        path = f"/api/runs/{earlier}/approvals/{question.data['key']}"
        answer = await server.client.post(path, json={"decision": "allow"})
        assert refusal(answer) == (409, "decision_refused")
        assert len((await server.chat(chat))["questions"]) == 1


def written(folder: Path) -> dict[str, str]:
    """The text files that tools have written, by name."""
    return {file.name: file.read_text() for file in folder.rglob("*.txt")}


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[tuple[AppServer, str, str]]:
    """A server, and a chat whose run asks whether it may write a file."""
    async with app_server(folder, ScriptedProvider(calls(WRITE), says("done"))) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        await server.wait_for(run_id, "approval_required")
        yield server, chat, run_id


async def test_a_script_of_a_skill_is_not_allowed_for_the_whole_chat(tmp_path: Path) -> None:
    put(tmp_path / "skills", "greeting", None, hello_sh="echo hello from a script\n")
    asked = calls(("run_skill_script", {"skill": "greeting", "path": "hello.sh"}))
    async with app_server(tmp_path, ScriptedProvider(asked, says("ok"))) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        await server.wait_for(run_id, "approval_required")
        (question,) = (await server.chat(chat))["questions"]
        assert question["always_asks"] is True
        path = f"/api/runs/{run_id}/approvals/{question['key']}"
        refused = await server.client.post(path, json={"decision": "allow_chat"})
        assert refusal(refused) == (409, "decision_refused")
        assert (await server.chat(chat))["questions"] == [question]
        assert "allow_chat" not in (await server.client.get(f"/chats/{chat}")).text
        await server.client.post(path, json={"decision": "allow"})
        (result,) = [e.data for e in await server.events(run_id) if e.type == "tool_result"]
        assert result["text"] == "hello from a script"
