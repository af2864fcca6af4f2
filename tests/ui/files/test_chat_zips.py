"""The zip of a whole chat holds all that the chat shows."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.harness.builtin.chat_files import ChatFiles

pytestmark = pytest.mark.anyio


async def whole(server: AppServer, chat: str) -> zipfile.ZipFile:
    answer = await server.client.get(f"/chats/{chat}/files.zip?record=1")
    assert answer.status_code == 200
    return zipfile.ZipFile(io.BytesIO(answer.content))


def lines_of(archive: zipfile.ZipFile) -> list[dict[str, Any]]:
    text = archive.read(".harness/record/events.jsonl").decode()
    return [json.loads(line) for line in text.splitlines()]


async def answered(server: AppServer, run_id: str, decision: str) -> None:
    question = (await server.wait_for(run_id, "approval_required")).data
    address = f"/api/runs/{run_id}/approvals/{question['key']}"
    assert (await server.client.post(address, json={"decision": decision})).status_code == 200
    await server.wait_for(run_id, "run_result")


async def test_runs_that_were_folded_long_ago_are_whole_in_it(tmp_path: Path) -> None:
    write = calls(("write_file", {"path": "a.txt", "content": "one"}))
    denied = calls(("write_file", {"path": "b.txt", "content": "two"}))
    provider = ScriptedProvider(write, says("first"), denied, says("second"), says("more"))
    async with app_server(tmp_path, provider, kept_runs=1) as server:
        chat = await server.new_chat(title="Q1/Q2 report")
        await answered(server, await server.send(chat, "Say one"), "allow")
        await answered(server, await server.send(chat, "Say two"), "deny")
        for number in range(3):
            await server.wait_for(await server.send(chat, f"And {number}"), "run_result")
        archive = await whole(server, chat)
        lines = lines_of(archive)
        kinds = [(line["type"], line["data"].get("decision")) for line in lines]
        assert kinds[:9] == [
            ("message", None),
            ("usage", None),
            ("approval_required", None),
            ("tool_call_start", "allow"),
            ("tool_result", "allow"),
            ("text_delta", None),
            ("usage", None),
            ("run_result", None),
            ("message", None),
        ]
        assert kinds[9:12] == [
            ("usage", None),
            ("approval_required", None),
            ("tool_result", "deny"),
        ]
        said = [line["data"]["text"] for line in lines if line["type"] == "message"]
        assert said == ["Say one", "Say two", "And 0", "And 1", "And 2"]
        text = archive.read(".harness/record/transcript.md").decode()
        assert text.count("\n## Person, ") == 5
        assert "The person allowed it once, at " in text
        assert "The person denied it, at " in text
        assert '\nMade "a.txt", version 1, ' in text
        assert "openai:one" in text


async def test_its_title_is_whole_in_its_name(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("x"))) as server:
        for title, name in (
            ("Q1/Q2 report", "Q1-Q2 report (chat).zip"),
            ("a \\ b: c", "a-b- c (chat).zip"),
            ("///", "- (chat).zip"),
        ):
            chat = await server.new_chat(title=title)
            answer = await server.client.head(f"/chats/{chat}/files.zip?record=1")
            assert f'filename="{name}"' in answer.headers["content-disposition"]


async def test_all_versions_are_in_it_and_can_be_used_where_it_is_unpacked(tmp_path: Path) -> None:
    answers = [
        calls(("write_file", {"path": "a.txt", "content": "one"})),
        calls(("write_file", {"path": "a.txt", "content": "two", "replace": True})),
        says("done"),
    ]
    async with app_server(tmp_path / "server", ScriptedProvider(*answers)) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Go")
        question = (await server.wait_for(run_id, "approval_required")).data
        address = f"/api/runs/{run_id}/approvals/{question['key']}"
        await server.client.post(address, json={"decision": "allow_chat"})
        await server.wait_for(run_id, "run_result")
        archive = await whole(server, chat)
        assert archive.testzip() is None
        archive.extractall(tmp_path / "copy")
    files = ChatFiles(tmp_path / "copy")
    assert [version.number for version in await files.versions("a.txt")] == [1, 2]
    assert await files.read_version("a.txt", 1) == b"one"
    assert await files.read("a.txt") == b"two"
