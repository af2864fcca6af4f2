"""The steps of a run: in pages, as a file that opens anywhere, and chats that begin from them."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.app_server import refusal
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, ToolServer, tool_server
from web.chats.steps.run_files import is_run_file
from web.harness.loop.actions import Condensed, ModelAnswered
from web.harness.sessions.journal import Step
from web.harness.tools.tool import KeepBlob, PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.messages import JsonObject, Message, TextBlock
from web.harness.values.usage import Usage
from web.ui.runs.run_pages import PAGE_STEPS, SHOWN_CHARS

pytestmark = pytest.mark.anyio

BROWSER = {"accept": "text/html"}
KEY = "sk-ant-" + "a1b2" * 8


def tools(keep: KeepBlob) -> list[Tool]:
    async def look(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput((TextBlock(f"found {arguments['at']} <b>&</b> {KEY}"),))

    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    return [Tool("look", "Looks.", schema, look, PermissionLevel.ALLOW)]


@pytest.fixture
async def server() -> AsyncIterator[ToolServer]:
    provider = ScriptedProvider(
        says("I am here."),
        calls(("look", {"at": "home"}), ("look", {"at": "work"}), text="Let me look."),
        says("Found both."),
        says("And on."),
    )
    async with tool_server(provider, tools) as made:
        yield made


async def looked(server: ToolServer) -> tuple[str, str]:
    """A chat with two runs, the second of which is written down: its steps are begun, model_call,
    answered, calls_started, two call_settled, model_call and answered."""
    chat = await server.new_chat(title="Looking around")
    await server.events(await server.send(chat, "Hello"))
    run_id = await server.send(chat, "Look at both")
    await server.events(run_id)
    server.runs.write_down(run_id, server.chat_here(chat).messages)
    return chat, run_id


async def page(server: ToolServer, path: str) -> str:
    answer = await server.client.get(path, headers=BROWSER)
    assert answer.status_code == 200, answer.text
    return answer.text


async def opened(server: ToolServer, data: bytes, **more: Any) -> Any:
    files = {"file": ("run.json", data, "application/json")}
    return await server.client.post("/api/opened-runs", files=files, **more)


async def texts(server: ToolServer, chat: str) -> list[str]:
    """What a conversation consists of, in short."""
    told = []
    for message in (await server.chat(chat))["messages"]:
        for block in message["content"]:
            if block["type"] == "text":
                told.append(block["text"])
            elif block["type"] == "tool_use":
                told.append(f"{block['name']} {block['arguments']['at']}")
            elif block["type"] == "tool_result":
                told.append(block["content"][0]["text"].split(" <")[0])
    return told


async def test_a_program_gets_the_steps_after_a_number_whole(server: ToolServer) -> None:
    _, run_id = await looked(server)
    path = f"/api/runs/{run_id}/steps"
    told = (await server.client.get(path)).json()
    kinds = [step["kind"] for step in told["steps"]]
    assert kinds[:3] == ["begun", "model_call", "answered"]
    assert (len(kinds), told["more"]) == (8, False)
    told = (await server.client.get(f"{path}?after=2&limit=1")).json()
    (step,) = told["steps"]
    assert (step["number"], step["text"], told["more"]) == (3, "Let me look.", True)
    assert [call["arguments"] for call in step["calls"]] == [{"at": "home"}, {"at": "work"}]
    assert refusal(await server.client.get(f"{path}?after=x")) == (422, "invalid_request")
    assert refusal(await server.client.get("/api/runs/no/steps")) == (404, "not_found")


async def test_the_page_shows_each_step_and_no_markup_of_a_tool(server: ToolServer) -> None:
    chat, run_id = await looked(server)
    html = await page(server, f"/chats/{chat}/runs/{run_id}/steps")
    assert html.count('class="step"') == 8
    for words in ("You asked", "Let me look.", "found home", "&lt;b&gt;&amp;&lt;/b&gt;", "$0.0123"):
        assert words in html
    # From the answers and the whole round, and from nowhere else.
    assert html.count("Start a new chat from here") == 3


async def test_the_page_shows_an_answer_as_text_and_tokens_once(server: ToolServer) -> None:
    chat, run_id = await looked(server)
    answer = Message("m", "assistant", (TextBlock("It **is** [so](a.md)."),))
    usage = ModelAnswered(8, (), "end_turn", Usage(3_228, 41))
    server.runs.write(run_id, Step("model_call", about={"tokens": 2_477}))
    server.runs.write(run_id, Step("answered", usage, (answer,)))
    html = await page(server, f"/chats/{chat}/runs/{run_id}/steps")
    assert "<p>It <strong>is</strong> so.</p>" in html
    # What the model has counted takes the place of the estimate before it.
    assert ("3\N{NARROW NO-BREAK SPACE}228 tokens in" in html, "estimated" in html) == (True, False)
    server.runs.write(run_id, Step("model_call", about={"tokens": 900}))
    html = await page(server, f"/chats/{chat}/runs/{run_id}/steps")
    assert "about 900 tokens, estimated" in html


async def test_ten_thousand_steps_come_in_pages_that_are_read_alone(server: ToolServer) -> None:
    chat, run_id = await looked(server)
    server.runs.write(run_id, *(Step("model_call", about={"model": "m"}) for _ in range(9_992)))
    server.runs.reads.clear()
    started = time.process_time()
    html = await page(server, f"/chats/{chat}/runs/{run_id}/steps?from=9901")
    assert time.process_time() - started < 2
    assert html.count('class="step"') == PAGE_STEPS
    assert 'id="step-10000"' in html
    assert 'rel="next"' not in html
    assert 'href="/chats/' + f'{chat}/runs/{run_id}/steps?from=9801"' in html
    assert sum(limit for _, limit in server.runs.reads) < 2 * PAGE_STEPS
    path = f"/chats/{chat}/runs/{run_id}/steps?from=10001"
    assert (await server.client.get(path, headers=BROWSER)).status_code == 404


async def test_a_long_text_is_cut_on_the_page_and_whole_on_that_of_its_step(
    server: ToolServer,
) -> None:
    chat, run_id = await looked(server)
    text = "long " * SHOWN_CHARS + "END"
    server.runs.write(run_id, Step("begun", messages=(Message("x", "user", (TextBlock(text),)),)))
    address = f"/chats/{chat}/runs/{run_id}/steps"
    assert "END" not in await page(server, address)
    alone = await page(server, f"{address}?step=9")
    assert "END" in alone
    assert alone.count('class="step"') == 1


async def test_a_run_that_was_not_written_down_says_so(server: ToolServer) -> None:
    chat = await server.new_chat()
    run_id = await server.send(chat, "Hello")
    await server.events(run_id)
    path = f"/chats/{chat}/runs/{run_id}"
    for each in ("steps", "export"):
        answer = await server.client.get(f"{path}/{each}", headers=BROWSER)
        assert answer.status_code == 404
        assert "--backend" in answer.text
    assert (await server.client.get(f"/api/runs/{run_id}/steps")).json()["steps"] == []


async def test_a_run_of_another_chat_is_not_there(server: ToolServer) -> None:
    _, run_id = await looked(server)
    other = await server.new_chat()
    answer = await server.client.get(f"/chats/{other}/runs/{run_id}/steps", headers=BROWSER)
    assert answer.status_code == 404
    form = {"step": "3"}
    answer = await server.client.post(f"/chats/{other}/runs/{run_id}/fork", data=form)
    assert answer.status_code == 404


async def test_a_file_holds_the_run_and_opens_on_a_machine_that_never_saw_it(
    server: ToolServer,
) -> None:
    chat, run_id = await looked(server)
    answer = await server.client.get(f"/chats/{chat}/runs/{run_id}/export")
    told = answer.headers["content-disposition"]
    assert told.startswith(f'attachment; filename="run-{run_id}.json"')
    data = answer.content
    assert is_run_file(data)
    assert KEY.encode() not in data
    assert (await server.client.get(f"/api/runs/{run_id}/export")).status_code == 200
    # No model, no key, no chat of the other.
    async with tool_server(ScriptedProvider(says("no")), lambda keep: []) as other:
        made = (await opened(other, data)).json()
        assert (made["run_id"], made["title"], made["steps"]) == (run_id, "Looking around", 8)
        html = await page(other, f"/opened-runs/{made['id']}")
        assert html.count('class="step"') == 8
        assert "found home" in html
        assert "<form" not in html
        told = (await other.client.get(f"/api/opened-runs/{made['id']}/steps?after=6")).json()
        assert [step["number"] for step in told["steps"]] == [7, 8]
        assert (await other.client.get("/api/chats")).json() == []
        eve = await other.client.get(f"/opened-runs/{made['id']}", headers={USER: "eve", **BROWSER})
        assert eve.status_code == 404


async def test_the_form_for_snapshots_opens_a_run_too(server: ToolServer) -> None:
    _, run_id = await looked(server)
    data = (await server.client.get(f"/api/runs/{run_id}/export")).content
    files = {"file": ("run.json", data, "application/json")}
    answer = await server.client.post("/chats/from-snapshot", files=files)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/opened-runs/")
    assert 'class="step"' in await page(server, answer.headers["location"])
    assert len((await server.client.get("/api/chats")).json()) == 1
    broken = json.loads(data) | {"title": "Another"}
    assert refusal(await opened(server, json.dumps(broken).encode())) == (422, "run_file_refused")
    later = json.loads(data) | {"version": 2}
    assert refusal(await opened(server, json.dumps(later).encode())) == (422, "from_the_future")


async def test_a_chat_begins_from_an_answer_and_the_first_stays_as_it_is(
    server: ToolServer,
) -> None:
    chat, run_id = await looked(server)
    before = await server.chat(chat)
    answer = await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 3})
    made = answer.json()
    assert (answer.status_code, made["title"]) == (201, "Step 3 of Looking around")
    told = await texts(server, made["id"])
    assert told[:6] == [
        "Hello", "I am here.", "Look at both", "Let me look.", "look home", "look work",
    ]  # fmt: skip
    # The calls were not run in this chat, and a model that goes on is told so.
    assert len(told) == 8
    assert all("not run in this chat" in each for each in told[6:])
    html = await page(server, f"/chats/{made['id']}")
    assert html.count('data-status="not_run"') == 2
    assert 'data-status="failed"' not in html
    await server.events(await server.send(made["id"], "Go on"))
    assert (await texts(server, made["id"]))[-1] == "And on."
    assert await server.chat(chat) == before
    # Its cost is its own.
    fork = await server.chat(made["id"])
    assert fork["usage"]["input_tokens"] < before["usage"]["input_tokens"]


async def test_a_chat_begins_from_a_whole_round_with_all_its_results(server: ToolServer) -> None:
    _, run_id = await looked(server)
    made = (await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 6})).json()
    assert (await texts(server, made["id"]))[-2:] == ["found home", "found work"]
    html = await page(server, f"/chats/{made['id']}")
    assert "Begun from step 6 of “Looking around”." in html


async def test_what_is_switched_off_in_a_chat_is_so_in_one_that_begins_from_it(
    server: ToolServer,
) -> None:
    chat, run_id = await looked(server)
    here = server.chat_here(chat)
    off, skills = ("time__get_current_time",), ("meeting-notes",)
    here.record = replace(here.record, tools_off=off, skills_off=skills, memory=True)
    made = (await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 6})).json()
    record = server.chat_here(made["id"]).record
    assert (record.tools_off, record.skills_off, record.memory) == (off, skills, True)
    # The step tells first which of two it is, and only once.
    assert made["title"] == "Step 6 of Looking around"
    fork = server.chat_here(made["id"])
    server.runs.write_down(fork.runs[-1], fork.messages)
    again = await server.client.post(f"/api/runs/{fork.runs[-1]}/fork", json={"step": 3})
    assert again.json()["title"] == "Step 3 of Looking around"


async def test_the_form_begins_one_chat_however_often_it_is_sent(server: ToolServer) -> None:
    chat, run_id = await looked(server)
    form = {"step": "8", "request_id": "once"}
    path = f"/chats/{chat}/runs/{run_id}/fork"
    first = await server.client.post(path, data=form)
    again = await server.client.post(path, data=form)
    assert first.status_code == 303
    assert first.headers["location"] == again.headers["location"]
    assert len((await server.client.get("/api/chats")).json()) == 2


async def test_no_chat_begins_from_the_middle_of_a_round_or_from_nowhere(
    server: ToolServer,
) -> None:
    _, run_id = await looked(server)
    path = f"/api/runs/{run_id}/fork"
    for step in (1, 2, 4, 5):
        answer = await server.client.post(path, json={"step": step})
        assert refusal(answer) == (422, "invalid_arguments")
    assert refusal(await server.client.post(path, json={"step": 99})) == (404, "not_found")
    assert refusal(await server.client.post(path, json={"step": 0})) == (422, "invalid_request")
    assert len((await server.client.get("/api/chats")).json()) == 1


async def test_a_fork_has_what_was_said_before_it_was_summarised(server: ToolServer) -> None:
    chat, run_id = await looked(server)
    here = server.chat_here(chat)
    first = here.runs[0]
    server.runs.write_down(first, here.messages)
    # Then a later run made the conversation shorter: of these two nothing is left in it.
    await server.events(await server.send(chat, "And now?"))
    here.history[:] = [each for each in here.history if each.id.startswith(here.runs[-1])]
    made = (await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 8})).json()
    told = await texts(server, made["id"])
    assert told[:3] == ["Hello", "I am here.", "Look at both"]
    assert told[-1] == "Found both."
    # Where not even steps are kept of it, the new chat says so.
    server.runs.forget(first)
    made = (await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 8})).json()
    assert (await texts(server, made["id"]))[0] == "Look at both"
    assert "earliest messages are not kept" in await page(server, f"/chats/{made['id']}")


async def test_a_fork_after_a_summary_has_the_summary(server: ToolServer) -> None:
    _, run_id = await looked(server)
    short = Message(f"{run_id}-s", "user", (TextBlock("In short: hello."),))
    done = Message(f"{run_id}-9", "assistant", (TextBlock("Short and done."),))
    server.runs.write(run_id, Step("condensed", Condensed(10), replaced=(short,)))
    server.runs.write(run_id, Step("answered", messages=(done,)))
    made = (await server.client.post(f"/api/runs/{run_id}/fork", json={"step": 10})).json()
    assert await texts(server, made["id"]) == ["In short: hello.", "Short and done."]
