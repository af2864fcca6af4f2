"""A program saves chats as snapshots and makes chats of them; so does the page without script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.snapshots.kept import FULL, SAMPLES
from tests.support.app_server import AppServer, app_server, refusal
from tests.support.kept import at_rest, until
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, tool_server
from web.harness.agent.agent import Agent
from web.harness.snapshots.form import read_snapshot, write_snapshot
from web.harness.values.config import ModelName
from web.harness.values.usage import Prices

pytestmark = pytest.mark.anyio

BROWSER = {"accept": "text/html"}

PRICES = {ModelName("openai", "one"): Prices(1.0, 2.0)}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AppServer]:
    provider = ScriptedProvider(says("Hello", " there"))
    async with app_server(tmp_path, provider, settings={"prices": PRICES}) as made:
        yield made


async def saved(server: AppServer, chat: str) -> bytes:
    answer = await server.client.get(f"/api/chats/{chat}/snapshot")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == f'attachment; filename="{chat}.json"'
    return answer.content


async def load(server: AppServer, data: bytes, **fields: str) -> httpx.Response:
    files = {"file": ("snapshot.json", data, "application/json")}
    return await server.client.post("/api/chats/from-snapshot", files=files, data=fields)


async def loaded(server: AppServer, data: bytes, **fields: str) -> dict[str, Any]:
    answer = await load(server, data, **fields)
    assert answer.status_code == 201, answer.text
    return await server.chat(answer.json()["id"])


async def page(server: AppServer, chat: str) -> str:
    return (await server.client.get(f"/chats/{chat}", headers=BROWSER)).text


async def talk(server: AppServer, chat: str, text: str = "Hi") -> None:
    await server.events(await server.send(chat, text))


async def test_a_chat_is_saved_loaded_and_goes_on(server: AppServer) -> None:
    chat = await server.new_chat(title="Invoices", system_prompt="Be brief.")
    limits = {"max_iterations": 7, "max_cost_dollars": 0.5}
    answer = await server.client.patch(f"/api/chats/{chat}", json={"limits": limits})
    assert answer.json()["limits"] == {
        **limits,
        "max_tokens": None,
        "max_context_tokens": None,
    }
    await talk(server, chat)
    data = await saved(server, chat)
    snapshot = read_snapshot(data)
    assert snapshot.session_id == chat
    assert snapshot.config.system_prompt == "Be brief."
    assert snapshot.config.limits.max_iterations == 7
    assert snapshot.config.limits.prices == Prices(1.0, 2.0)
    assert [message.text for message in snapshot.messages] == ["Hi", "Hello there"]
    assert (snapshot.usage.input_tokens, snapshot.usage.output_tokens) == (10, 2)
    assert snapshot.cost == pytest.approx(0.000014)

    other = await loaded(server, data)
    assert other["id"] != chat
    assert (other["title"], other["system_prompt"]) == ("Invoices", "Be brief.")
    assert other["limits"]["max_iterations"] == 7
    assert [each["content"][0]["text"] for each in other["messages"]] == ["Hi", "Hello there"]
    assert (other["turns"], other["usage"]["input_tokens"]) == (1, 10)
    await talk(server, other["id"], "And now?")
    after = await server.chat(other["id"])
    assert len(after["messages"]) == 4
    assert (after["turns"], after["usage"]["input_tokens"]) == (2, 20)
    assert after["cost"] == pytest.approx(0.000028)
    assert (await server.chat(chat))["turns"] == 1


async def test_the_page_shows_a_loaded_chat_as_if_it_were_its_own(server: AppServer) -> None:
    chat = await loaded(server, write_snapshot(FULL))
    shown = await page(server, chat["id"])
    for words in ("What is the total of 40 and 2?", "add", "42", "Loaded from a snapshot."):
        assert words in shown
    assert "anthropic:claude-sonnet-4-6 is not offered here, so openai:one answers." in shown
    assert "You are an invoice assistant." in shown
    assert 'data-state="idle"' in shown


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
async def test_a_snapshot_of_harnessx_becomes_a_chat_that_goes_on(
    server: AppServer, version: str
) -> None:
    chat = await loaded(server, (SAMPLES / f"harnessx-{version}.json").read_bytes())
    assert len(chat["messages"]) == 6
    assert chat["title"] == "Remember that this project analyzes invoices."
    assert chat["usage"]["input_tokens"] == 270
    await talk(server, chat["id"], "Go on")
    snapshot = read_snapshot(await saved(server, chat["id"]))
    assert len(snapshot.messages) == 8
    assert snapshot.metadata["harnessx"] == {"lifetime_iterations": 3}
    assert snapshot.config.extra["prompt_cache"]["cache_history"] is True


async def test_what_a_chat_cannot_use_is_saved_with_it_again(server: AppServer) -> None:
    chat = await loaded(server, write_snapshot(FULL))
    await talk(server, chat["id"])
    snapshot = read_snapshot(await saved(server, chat["id"]))
    assert snapshot.extensions == FULL.extensions
    assert snapshot.metadata == {**FULL.metadata, "title": chat["title"]}
    assert snapshot.config.extra == FULL.config.extra
    assert snapshot.learned_limits.items() >= FULL.learned_limits.items()
    [pinned] = snapshot.pinned
    assert pinned == snapshot.messages[0].id


async def test_a_saved_chat_is_a_session_of_the_library(server: AppServer, tmp_path: Path) -> None:
    chat = await server.new_chat()
    await talk(server, chat)
    (tmp_path / f"{chat}.json").write_bytes(await saved(server, chat))
    provider = ScriptedProvider(says("on we go"))
    async with await Agent.load_session(chat, storage_dir=tmp_path, provider=provider) as agent:
        assert (await agent.run("Go on")).text == "on we go"
        assert provider.requests[0].messages[0].text == "Hi"


async def test_ids_of_a_file_never_become_ids_of_the_page(server: AppServer) -> None:
    form = json.loads((SAMPLES / "harnessx-0.4.0.json").read_text())
    evil = 'composer"><script>alert(1)</script>'
    form["messages"][3]["content"][0]["id"] = evil
    form["messages"][4]["content"][0]["tool_use_id"] = evil
    chat = await loaded(server, json.dumps(form).encode())
    assert "<script>alert" not in await page(server, chat["id"])
    [use] = [each for m in chat["messages"] for each in m["content"] if each["type"] == "tool_use"]
    assert use["id"] == f"{chat['messages'][3]['id']}-0"


async def test_hostile_text_of_a_file_is_only_text(server: AppServer) -> None:
    form = json.loads((SAMPLES / "harnessx-0.4.0.json").read_text())
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    form["messages"][0]["content"] = evil
    form["messages"][1]["content"][0]["text"] = evil
    form["messages"][4]["content"][0]["content"] = evil
    form["config"]["system_prompt"] = f"</textarea>{evil}"
    form["metadata"] = {"title": evil}
    chat = await loaded(server, json.dumps(form).encode())
    shown = await page(server, chat["id"])
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown


async def test_pictures_come_back_with_a_loaded_chat(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("A plan."))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        files = {"files": ("plan.png", png(30, 40), "image/png")}
        answer = await server.client.post(f"/chats/{chat}/uploads", files=files)
        assert answer.status_code in (200, 303), answer.text
        sent = {"text": "What is this?", "request_id": "r"}
        await server.client.post(f"/chats/{chat}/messages", data=sent, headers=BROWSER)
        await at_rest(server, chat)
        data = await saved(server, chat)
        other = await loaded(server, data)
        [picture] = [each for each in other["messages"][0]["content"] if each["type"] == "image"]
        path = f"/chats/{other['id']}/blobs/{picture['sha256']}"
        assert (await server.client.get(path)).content == png(30, 40)
        await talk(server, other["id"], "And now?")
        [shown] = provider.requests[-1].messages[0].pictures
        assert shown.data == png(30, 40)


async def test_a_chat_that_answers_is_not_saved_and_says_so(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with app_server(tmp_path, ScriptedProvider([go, *says("done")])) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Hi")
        answer = await server.client.get(f"/api/chats/{chat}/snapshot")
        assert refusal(answer) == (409, "session_conflict")
        assert "no run under way" in answer.json()["message"]
        go.set()
        await server.events(run_id)


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 422, "snapshot_refused"),
        (b"{}", 422, "snapshot_refused"),
        (write_snapshot(FULL)[:-40], 422, "snapshot_refused"),
        (write_snapshot(FULL).replace(b"invoice assistant", b"pirate"), 422, "snapshot_refused"),
        (b"[" * 3_000_000, 422, "snapshot_refused"),
        (b" " * 40_000, 413, "snapshot_too_large"),
    ],
)
async def test_a_broken_snapshot_makes_no_chat(
    tmp_path: Path, data: bytes, status: int, code: str
) -> None:
    limit = 20_000 if code == "snapshot_too_large" else 10_000_000
    async with app_server(tmp_path, max_snapshot_bytes=limit) as server:
        answer = await load(server, data)
        told = answer.json()
        assert answer.status_code == status, told
        assert told["code"] in (code, "too_large")
        assert told["message"]
        assert (await server.client.get("/api/chats")).json() == []


async def test_a_request_far_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with app_server(tmp_path, max_snapshot_bytes=20_000) as server:
        answer = await load(server, b" " * 4_000_000)
        assert refusal(answer) == (413, "too_large")


async def test_the_same_request_id_makes_one_chat(server: AppServer) -> None:
    data = write_snapshot(FULL)
    first, second = [await loaded(server, data, request_id="once") for _ in range(2)]
    assert first["id"] == second["id"]
    assert len(second["messages"]) == 4
    assert len((await server.client.get("/api/chats")).json()) == 1


@pytest.mark.parametrize("store", ["memory", pytest.param("sqlite", marks=pytest.mark.full)])
async def test_the_same_request_id_several_times_at_once_makes_one_chat_that_stays(
    tmp_path: Path, store: str
) -> None:
    settings = {"store": store if store == "memory" else f"sqlite:///{tmp_path / 'c.sqlite3'}"}
    data = write_snapshot(FULL)
    async with app_server(tmp_path, settings=settings) as server:
        loads = [loaded(server, data, request_id="once") for _ in range(3)]
        told = await asyncio.gather(*loads)
        assert len({each["id"] for each in told}) == 1
        assert [len(each["messages"]) for each in told] == [4, 4, 4]
        assert (await page(server, told[0]["id"])).count('id="u-') == 1
        # After one that is refused, the next one is not.
        await load(server, b"{}", request_id="twice")
        assert (await loaded(server, data, request_id="twice"))["id"] != told[0]["id"]


@pytest.mark.full
async def test_two_servers_that_are_sent_the_same_request_make_one_chat(tmp_path: Path) -> None:
    settings = {"store": f"sqlite:///{tmp_path / 'c.sqlite3'}"}
    data = write_snapshot(FULL)
    async with (
        app_server(tmp_path, settings=settings) as one,
        app_server(tmp_path, settings=settings) as two,
    ):
        answers = await asyncio.gather(*(load(each, data, request_id="r") for each in (one, two)))
        assert {answer.status_code for answer in answers} == {201}
        (chat,) = {answer.json()["id"] for answer in answers}
        for server in (one, two):

            async def shows_it_once(server: AppServer = server) -> bool:
                shown = (await page(server, chat)).count('id="u-')
                return shown == 1 and len((await server.chat(chat))["messages"]) == 4

            assert await until(shows_it_once)


async def test_a_message_that_is_sent_at_once_waits_for_the_whole_conversation(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(calls(("calculate", {"expression": "6*7"})), says("42"))
    async with app_server(tmp_path, provider) as server:
        chat = await loaded(server, write_snapshot(FULL))
        await talk(server, chat["id"], "six times seven?")
        sent = provider.requests[0].messages
        assert [message.role for message in sent][:4] == ["user", "assistant", "tool", "assistant"]
        assert sent[-1].text == "six times seven?"


async def test_limits_are_checked_and_hold_for_the_next_message(tmp_path: Path) -> None:
    provider = ScriptedProvider(calls(("current_time", {})))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        path = f"/api/chats/{chat}"
        for limits in ({"max_iterations": 0}, {"max_tokens": -1}, {"max_cost_dollars": 1e9}):
            answer = await server.client.patch(path, json={"limits": limits})
            assert refusal(answer) == (422, "invalid_arguments")
        await server.client.patch(path, json={"limits": {"max_iterations": 2, "max_tokens": 50}})
        events = await server.events(await server.send(chat, "Hi"))
        assert events[-1].data["status"] == "limit"
        assert events[-1].data["reason"] == "max_iterations"
        assert [request.max_tokens for request in provider.requests] == [50, 50]
        answer = await server.client.patch(path, json={"limits": {"max_iterations": None}})
        assert answer.json()["limits"] == {
            "max_iterations": None,
            "max_cost_dollars": None,
            "max_tokens": 50,
            "max_context_tokens": None,
        }


async def test_a_cost_limit_ends_a_turn_where_prices_are_known(tmp_path: Path) -> None:
    provider = ScriptedProvider(calls(("current_time", {})))
    settings = {"prices": {ModelName("openai", "one"): Prices(1_000.0, 0.0)}}
    async with app_server(tmp_path, provider, settings=settings) as server:
        chat = await server.new_chat()
        await server.client.patch(
            f"/api/chats/{chat}", json={"limits": {"max_cost_dollars": 0.015}}
        )
        events = await server.events(await server.send(chat, "Hi"))
        assert (events[-1].data["status"], events[-1].data["reason"]) == (
            "limit",
            "max_cost_dollars",
        )
        assert events[-1].data["cost"] == pytest.approx(0.02)


async def test_a_strangers_chat_is_as_if_it_were_not_there() -> None:
    async with tool_server(ScriptedProvider(says("ok")), lambda keep: []) as server:
        chat = await server.new_chat()
        for path in (f"/api/chats/{chat}/snapshot", f"/chats/{chat}/snapshot"):
            answer = await server.client.get(path, headers={USER: "bob"})
            assert answer.status_code == 404
            assert (await server.client.get(path)).status_code == 200
        files = {"file": ("s.json", write_snapshot(FULL), "application/json")}
        answer = await server.client.post(
            "/api/chats/from-snapshot", files=files, headers={USER: "bob"}
        )
        path = f"/api/chats/{answer.json()['id']}"
        assert (await server.client.get(path)).status_code == 404
        assert (await server.client.get(path, headers={USER: "bob"})).status_code == 200


class TestForms:
    """What the page's own forms send, without script."""

    async def test_instructions_and_limits_are_saved_and_shown(self, server: AppServer) -> None:
        chat = await server.new_chat()
        typed = {
            "system_prompt": "Be brief.",
            "max_iterations": "12",
            "max_tokens": "1 000",
            "max_cost_dollars": "$0.25",
            "max_context_tokens": "",
        }
        answer = await server.client.post(f"/chats/{chat}/settings", data=typed, headers=BROWSER)
        assert answer.status_code == 303
        whole = await server.chat(chat)
        assert whole["system_prompt"] == "Be brief."
        assert whole["limits"] == {
            "max_iterations": 12,
            "max_cost_dollars": 0.25,
            "max_tokens": 1000,
            "max_context_tokens": None,
        }
        shown = await page(server, chat)
        for value in ('value="12"', 'value="1000"', 'value="0.25"', ">\nBe brief.</textarea>"):
            assert value in shown
        await server.client.post(
            f"/chats/{chat}/settings", data={"title": "Other"}, headers=BROWSER
        )
        assert (await server.chat(chat))["limits"]["max_iterations"] == 12

    async def test_what_is_no_limit_is_refused_with_what_was_typed(self, server: AppServer) -> None:
        chat = await server.new_chat()
        for typed, said in [
            ({"max_iterations": "many"}, "many"),
            ({"max_iterations": "1.5"}, "is not a whole number"),
            ({"max_tokens": "0"}, "is not between 1 and"),
            ({"max_cost_dollars": "nan"}, "is not a number"),
            ({"max_context_tokens": "9" * 20}, "is not between"),
        ]:
            answer = await server.client.post(
                f"/chats/{chat}/settings",
                data={"system_prompt": "kept?", **typed},
                headers={"hx-request": "true"},
            )
            assert answer.status_code == 422
            assert said in answer.text
        assert (await server.chat(chat))["system_prompt"] == ""

    async def test_a_snapshot_is_loaded_and_saved(self, server: AppServer) -> None:
        files = {"file": ("snapshot.json", write_snapshot(FULL), "application/json")}
        answer = await server.client.post("/chats/from-snapshot", files=files, headers=BROWSER)
        assert answer.status_code == 303
        address = answer.headers["location"]
        shown = (await server.client.get(address, headers=BROWSER)).text
        assert f'href="{address}/snapshot"' in shown
        data = (await server.client.get(f"{address}/snapshot", headers=BROWSER)).content
        assert len(read_snapshot(data).messages) == 4

    async def test_a_file_that_is_none_is_refused_in_words(self, server: AppServer) -> None:
        for files in (
            {"file": ("notes.txt", b"Rain.", "text/plain")},
            {"file": ("", b"", "application/octet-stream")},
        ):
            answer = await server.client.post(
                "/chats/from-snapshot", files=files, headers={"hx-request": "true"}
            )
            assert answer.status_code == 422
            assert 'role="alert"' in answer.text
