"""The JSON API over a real connection: chats, messages, runs, approvals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.app_server import app_server, refusal, text_of
from tests.support.scripted_provider import ScriptedProvider, breaks, calls, says, thinks
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


async def test_a_chat_is_made_found_renamed_deleted_and_brought_back(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        made = await server.client.post(
            "/api/chats",
            json={"title": "Plans", "model": "openai:two", "system_prompt": "Be brief."},
        )
        assert made.status_code == 201
        chat = made.json()
        assert (chat["title"], chat["model"], chat["state"]) == ("Plans", "openai:two", "idle")
        assert chat["system_prompt"] == "Be brief."
        assert (chat["active_run"], chat["messages"], chat["queue"]) == (None, [], [])
        path = f"/api/chats/{chat['id']}"
        assert (await server.client.get(path)).json() == chat

        renamed = await server.client.patch(path, json={"title": "Other plans"})
        assert (renamed.status_code, renamed.json()["title"]) == (200, "Other plans")
        assert renamed.json()["model"] == "openai:two"

        deleted = await server.client.delete(path)
        assert (deleted.status_code, deleted.content) == (204, b"")
        assert refusal(await server.client.get(path)) == (404, "not_found")
        assert refusal(await server.client.delete(path)) == (404, "not_found")
        assert (await server.client.get("/api/chats")).json() == []

        restored = await server.client.post(f"{path}/restore")
        assert (restored.status_code, restored.json()["title"]) == (200, "Other plans")
        assert (await server.client.get(path)).status_code == 200


async def test_chats_are_listed_with_the_newest_message_first(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        ids = [await server.new_chat(title=str(number)) for number in range(3)]
        await server.wait_for(await server.send(ids[0], "hello"), "run_result")
        listed = (await server.client.get("/api/chats")).json()
        assert [chat["title"] for chat in listed] == ["0", "2", "1"]
        assert all("messages" not in chat for chat in listed)


async def test_the_same_request_for_a_chat_makes_one(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        ids = {await server.new_chat(request_id="r") for _ in range(3)}
        assert len(ids) == 1
        assert len((await server.client.get("/api/chats")).json()) == 1


async def test_a_conversation_is_given_as_messages_with_blocks(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        calls(("calculate", {"expression": "6*7"}), text="Let me see."),
        thinks("Easy.", "It is 42."),
    )
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "What is 6*7?")
        await server.wait_for(run_id, "run_result")
        whole = await server.chat(chat)
    messages = whole["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert [message["parent_id"] for message in messages] == [
        None,
        *(message["id"] for message in messages[:-1]),
    ]
    user, asked, result, answer = (message["content"] for message in messages)
    assert user == [{"type": "text", "text": "What is 6*7?"}]
    assert asked[0] == {"type": "text", "text": "Let me see."}
    call = asked[1]
    assert (call["type"], call["name"], call["arguments"]) == (
        "tool_use",
        "calculate",
        {"expression": "6*7"},
    )
    assert result == [
        {
            "type": "tool_result",
            "call_id": call["id"],
            "content": [{"type": "text", "text": "42"}],
            "is_error": False,
        }
    ]
    # A provider's seal of its thinking is nobody else's.
    assert answer == [
        {"type": "thinking", "text": "Easy.", "redacted": False},
        {"type": "text", "text": "It is 42."},
    ]


async def test_a_repeated_request_is_the_same_run(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("one"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        runs = await asyncio.gather(
            *(server.send(chat, "hi", request_id="r", queue=True) for _ in range(8))
        )
        assert len(set(runs)) == 1
        await server.wait_for(runs[0], "run_result")
        assert await server.send(chat, "hi", request_id="r") == runs[0]
        other = {"text": "something else", "request_id": "r"}
        answer = await server.client.post(f"/api/chats/{chat}/messages", json=other)
        assert refusal(answer) == (409, "request_id_reused")
        assert len(provider.requests) == 1


async def test_a_busy_chat_refuses_a_second_message_unless_it_may_wait(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextChunk("a"), gate, ModelDone("end_turn")], says("b"), says("c"))
    async with app_server(tmp_path, provider, max_queued=2) as server:
        chat = await server.new_chat()
        path = f"/api/chats/{chat}/messages"
        first = await server.send(chat, "one")
        await server.wait_for(first, "text_delta")
        assert refusal(await server.client.post(path, json={"text": "two"})) == (
            409,
            "session_conflict",
        )
        answer = await server.client.post(path, json={"text": "two", "queue": True})
        assert (answer.status_code, answer.json()["queued"]) == (202, True)
        second = answer.json()["run_id"]
        third = await server.send(chat, "three", queue=True)
        assert refusal(await server.client.post(path, json={"text": "four", "queue": True})) == (
            429,
            "limit_exceeded",
        )
        whole = await server.chat(chat)
        assert whole["active_run"] == first
        assert whole["state"] == "working"
        assert whole["queue"] == [
            {"run_id": second, "text": "two", "attachments": []},
            {"run_id": third, "text": "three", "attachments": []},
        ]
        assert (await server.status(second))["state"] == "queued"
        gate.set()
        assert [text_of(await server.events(run)) for run in (first, second, third)] == [
            "a",
            "b",
            "c",
        ]
        assert [message["content"][0]["text"] for message in (await server.chat(chat))["messages"]][
            ::2
        ] == ["one", "two", "three"]


async def test_a_message_can_be_sent_as_soon_as_the_result_was_read(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        chat = await server.new_chat()
        for _ in range(25):
            await server.events(await server.send(chat, "again"))


async def test_a_message_can_be_tried_again_as_soon_as_its_failure_was_read(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(breaks(transient=False))) as server:
        run_id = await server.send(await server.new_chat(), "go")
        for _ in range(10):
            await server.events(run_id)
            again = await server.client.post(f"/api/runs/{run_id}/retry")
            assert again.status_code == 202, again.text
            run_id = again.json()["run_id"]


async def test_a_run_tells_what_it_is_at_and_stops_when_asked(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextChunk("so far"), gate, ModelDone("end_turn")])
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        await server.wait_for(run_id, "text_delta")
        status = await server.status(run_id)
        expected = {"run_id": run_id, "chat_id": chat, "state": "running"}
        assert status == {**expected, "waits_for": None, "result": None}
        stopped = await server.client.post(f"/api/runs/{run_id}/stop")
        assert stopped.status_code == 202
        result = (await server.events(run_id))[-1].data
        assert (result["status"], result["reason"]) == ("cancelled", "stopped")
        assert (await server.client.post(f"/api/runs/{run_id}/stop")).status_code == 202
        status = await server.status(run_id)
        assert (status["state"], status["result"]) == ("ended", result)
        assert provider.open == 0
        kept = (await server.chat(chat))["messages"]
        assert kept[-1]["content"] == [{"type": "text", "text": "so far"}]


async def test_a_failed_run_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(breaks(transient=False, code="provider_auth"), says("now"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        error, result = (await server.events(run_id))[-2:]
        assert (error.type, error.data["code"]) == ("error", "provider_auth")
        assert (result.data["status"], result.data["reason"]) == ("failed", "provider_auth")
        assert (await server.chat(chat))["state"] == "failed"
        again = await server.client.post(f"/api/runs/{run_id}/retry")
        assert again.status_code == 202
        assert text_of(await server.events(again.json()["run_id"])) == "now"
        assert len((await server.chat(chat))["messages"]) == 2


async def test_the_model_of_a_message_is_the_chats_from_then_on(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("ok"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        await server.events(await server.send(chat, "one", model="openai:two"))
        assert (await server.chat(chat))["model"] == "openai:two"
        assert provider.requests[0].model == "two"
        answer = await server.client.post(
            f"/api/chats/{chat}/messages", json={"text": "x", "model": "openai:three"}
        )
        assert refusal(answer) == (422, "configuration_error")
        assert "openai:one" in answer.json()["hint"]


MISFITS: list[tuple[bytes, dict[str, str], int, str, str]] = [
    (b"", JSON, 422, "empty", "empty"),
    (b"{}", JSON, 422, "empty", "empty"),
    (b'{"text": 1}', JSON, 422, "invalid_request", "`text` must be a string"),
    (b'{"text": null}', JSON, 422, "invalid_request", "`text` must be a string"),
    (b'{"text": "x", "queue": 1}', JSON, 422, "invalid_request", "`queue` must be true or"),
    (b'{"text": "x", "nope": 1}', JSON, 422, "invalid_request", "`nope` is not known"),
    (b'{"text": "x", "request_id": ""}', JSON, 422, "invalid_request", "`request_id`"),
    (b"[]", JSON, 422, "invalid_request", "must be"),
    (b'"text"', JSON, 422, "invalid_request", "must be"),
    (b'{"text": "  \\n "}', JSON, 422, "empty", "empty"),
    (b'{"text": "x"', JSON, 400, "malformed_json", "JSON"),
    (b"{'text': 'x'}", JSON, 400, "malformed_json", "JSON"),
    (b'{"text": "\xff"}', JSON, 400, "malformed_json", "JSON"),
    (b'{"text": "\\ud800"}', JSON, 400, "malformed_json", "JSON"),
    (b'{"text": NaN}', JSON, 400, "malformed_json", "JSON"),
    (b'{"text":' + b"[" * 100_000, JSON, 400, "malformed_json", "recursion"),
    (b"1" * 100_000, JSON, 400, "malformed_json", "JSON"),
    (b'{"text": "x"}', {"Content-Type": "text/plain"}, 415, "unsupported_media_type", "JSON"),
    (b'{"text": "x"}', {}, 415, "unsupported_media_type", "JSON"),
    (
        b"text=x",
        {"Content-Type": "application/x-www-form-urlencoded"},
        415,
        "unsupported_media_type",
        "JSON",
    ),
    (b'{"text": "' + b"x" * 1_001 + b'"}', JSON, 413, "too_long", "1,000"),
]
"""Content and headers of a message, with status, code and a word of the refusal."""


async def test_a_message_that_does_not_fit_is_refused_with_words(tmp_path: Path) -> None:
    async with app_server(tmp_path, max_message_chars=1_000) as server:
        chat = await server.new_chat()
        path = f"/api/chats/{chat}/messages"
        for content, headers, status, code, word in MISFITS:
            answer = await server.client.post(path, content=content, headers=headers)
            assert refusal(answer) == (status, code), content[:50]
            assert word in answer.json()["message"], content[:50]
        assert (await server.chat(chat))["messages"] == []


async def test_what_is_too_much_for_the_server_is_refused(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with app_server(
        tmp_path, ScriptedProvider([gate, *says("x")]), max_chats=2, max_running_turns=1
    ) as server:
        one, two = await server.new_chat(), await server.new_chat()
        assert refusal(await server.client.post("/api/chats")) == (429, "limit_exceeded")
        run_id = await server.send(one, "go")
        refused = await server.client.post(f"/api/chats/{two}/messages", json={"text": "go"})
        assert refusal(refused) == (429, "limit_exceeded")
        assert (await server.client.get("/api/health")).json()["running"] == 1
        gate.set()
        await server.events(run_id)
        await server.events(await server.send(two, "go"))


async def test_wrong_addresses_and_methods_are_told_what_is_right(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        assert refusal(await server.client.get("/api/nowhere")) == (404, "not_found")
        assert refusal(await server.client.get("/api/chats/nope")) == (404, "not_found")
        for path, methods in (
            ("/api/chats", {"GET", "HEAD", "POST"}),
            ("/api/chats/x", {"GET", "HEAD", "PATCH", "DELETE"}),
            ("/api/runs/x/stop", {"POST"}),
        ):
            answer = await server.client.put(path)
            assert refusal(answer) == (405, "method_not_allowed")
            assert set(answer.headers["Allow"].split(", ")) == methods


async def test_health_tells_what_the_server_is(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        await server.new_chat()
        answer = await server.client.get("/api/health")
        assert answer.headers["cache-control"] == "no-store"
        told = answer.json()
        assert (told["status"], told["chats"], told["running"]) == ("ok", 1, 0)
        assert told["models"][:2] == ["openai:one", "openai:two"]
        assert told["store"] == "memory"
        assert told["version"]
        assert told["epoch"]
