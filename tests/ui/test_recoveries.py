"""A run that was cut off: programs and forms without script say how it goes on, each thing once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.support.app_server import refusal
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.tool_app import USER, ToolServer, tool_server
from web.chats.runs.run_control import MAX_RECOVERY_CHARS
from web.harness.values.events import RecoveryRequired, ToolCallStart
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

BROWSER = {"accept": "text/html"}


@dataclass
class CutOff:
    """A chat whose run was cut off while `pay` ran."""

    server: ToolServer
    chat: str
    run_id: str
    go_on: asyncio.Event

    @property
    def key(self) -> str:
        return f"{self.run_id}-1-0-recovery-1"

    @property
    def call_id(self) -> str:
        return f"{self.run_id}-1-0"

    async def state(self) -> str:
        return str((await self.server.status(self.run_id))["state"])


@pytest.fixture
async def cut_off() -> AsyncIterator[CutOff]:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("I pay. "), go_on, TextChunk("Paid."), ModelDone("end_turn")], says("Next.")
    )
    async with tool_server(provider, lambda keep: []) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Pay 5")
        await server.wait_for(run_id, "text_delta")
        made = CutOff(server, chat, run_id, go_on)
        start = ToolCallStart(made.call_id, "pay", {"sum": "5 <b>"}, f"{run_id}-1")
        asked = RecoveryRequired(made.key, made.call_id, "pay", {"sum": "5 <b>"})
        server.log.append(run_id, [start, asked])
        yield made
        go_on.set()


async def test_a_program_finds_what_is_not_known_and_answers_it_once(cut_off: CutOff) -> None:
    server = cut_off.server
    assert await cut_off.state() == "asking"
    (asked,) = (await server.chat(cut_off.chat))["recoveries"]
    assert asked == {
        "key": cut_off.key,
        "run_id": cut_off.run_id,
        "call_id": cut_off.call_id,
        "name": "pay",
        "arguments": {"sum": "5 <b>"},
    }
    path = f"/api/runs/{cut_off.run_id}/recoveries/{cut_off.key}"
    answer = {"how": "result", "text": "paid, receipt 7"}
    assert (await server.client.post(path, json=answer)).status_code == 202
    assert (await server.client.post(path, json=answer)).status_code == 409
    told = await server.wait_for(cut_off.run_id, "tool_result")
    assert told.data["text"] == "paid, receipt 7"
    assert (await server.chat(cut_off.chat))["recoveries"] == []
    assert await cut_off.state() == "running"


async def test_what_is_no_answer_is_refused_and_leaves_the_question_open(cut_off: CutOff) -> None:
    server, path = cut_off.server, f"/api/runs/{cut_off.run_id}/recoveries"
    for body in ({}, {"how": "perhaps"}, {"how": "retry", "more": 1}):
        answer = await server.client.post(f"{path}/{cut_off.key}", json=body)
        assert refusal(answer) == (422, "invalid_request")
    form = {"how": "result", "text": "x" * (MAX_RECOVERY_CHARS + 1)}
    address = f"/chats/{cut_off.chat}/recoveries/{cut_off.key}"
    assert (await server.client.post(address, data=form)).status_code == 413
    assert (await server.client.post(address, data={"how": "perhaps"})).status_code == 422
    answer = await server.client.post(f"{path}/no-such", json={"how": "retry"})
    assert refusal(answer) == (409, "decision_refused")
    eve = {USER: "eve"}
    answer = await server.client.post(f"{path}/{cut_off.key}", json={"how": "retry"}, headers=eve)
    assert refusal(answer) == (404, "not_found")
    assert len((await server.chat(cut_off.chat))["recoveries"]) == 1


async def test_without_script_the_card_is_a_form_that_leads_back(cut_off: CutOff) -> None:
    server = cut_off.server
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    action = f"/chats/{cut_off.chat}/recoveries/{cut_off.key}"
    assert "We do not know if <code>pay</code> ran" in html
    assert "5 &lt;b&gt;" in html
    assert html.count(f'action="{action}"') == 2
    for how in ("result", "retry", "abort"):
        assert f'name="how" value="{how}"' in html
    answer = await server.client.post(action, data={"how": "retry"}, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/chats/{cut_off.chat}")
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    assert "We do not know" not in html
    assert "You had it run again." in html
    # The second tab, which still shows the card, is told so.
    again = await server.client.post(action, data={"how": "abort"}, headers=BROWSER)
    assert again.status_code == 409
    assert "answered already" in again.text


async def test_giving_up_ends_the_run_and_keeps_that_nobody_knows(cut_off: CutOff) -> None:
    server = cut_off.server
    action = f"/chats/{cut_off.chat}/recoveries/{cut_off.key}"
    await server.client.post(action, data={"how": "abort"})
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    assert "not known if it ran" in html
    assert "Given up" in html


async def test_all_of_its_arguments_are_on_a_page_of_their_own(cut_off: CutOff) -> None:
    server = cut_off.server
    path = f"/chats/{cut_off.chat}/approvals/{cut_off.key}"
    html = (await server.client.get(path, headers=BROWSER)).text
    assert "not known whether it did its work" in html
    assert "Allow once" not in html
    told = await server.client.get(f"/api/runs/{cut_off.run_id}/approvals/{cut_off.key}")
    assert (told.json()["state"], told.json()["arguments"]) == ("unknown", {"sum": "5 <b>"})


@pytest.mark.parametrize(("deed", "state"), [("resume", "working"), ("leave", "failed")])
async def test_a_run_that_stands_still_goes_on_or_is_left_as_it_is(
    cut_off: CutOff, deed: str, state: str
) -> None:
    server = cut_off.server
    chat = server.chat_here(cut_off.chat)
    chat.transcript.halt(cut_off.run_id, "stopped")
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    assert "The server was stopped while this answer was written" in html
    action = f"/chats/{cut_off.chat}/runs/{cut_off.run_id}/{deed}"
    assert f'action="{action}"' in html
    answer = await server.client.post(action, headers=BROWSER)
    assert answer.status_code == 303
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    # What was shown before is there, once.
    assert html.count("I pay.") == 1
    assert "Leave it" not in html
    if deed == "resume":
        assert "The server was stopped here; the answer goes on below." in html
        assert chat.transcript.status.state == "asking"
    else:
        assert chat.transcript.status.state == state


async def test_a_program_pauses_goes_on_with_and_leaves_runs(cut_off: CutOff) -> None:
    server, path = cut_off.server, f"/api/runs/{cut_off.run_id}"
    assert (await server.client.post(f"{path}/pause")).status_code == 202
    assert (await server.chat(cut_off.chat))["state"] == "paused"
    assert (await server.chat(cut_off.chat))["active_run"] == cut_off.run_id
    assert await cut_off.state() == "paused"
    assert (await server.client.post(f"{path}/resume")).status_code == 202
    # It goes on to where it asks.
    assert (await server.chat(cut_off.chat))["state"] == "asking"
    assert (await server.client.post(f"{path}/leave")).status_code == 202
    assert (await server.wait_for(cut_off.run_id, "run_result")).data["reason"] == "interrupted"


async def test_a_pause_is_offered_where_runs_are_written_down(cut_off: CutOff) -> None:
    server = cut_off.server
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    assert ">Pause<" not in html
    server.chat_here(cut_off.chat).transcript.written_down = True
    key = f"{cut_off.run_id}-1-0-recovery-1"
    await server.client.post(f"/chats/{cut_off.chat}/recoveries/{key}", data={"how": "retry"})
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    action = f"/chats/{cut_off.chat}/runs/{cut_off.run_id}/pause"
    assert f'action="{action}"' in html
    # It can be looked at while it runs, and while it stands still.
    steps = f'href="/chats/{cut_off.chat}/runs/{cut_off.run_id}/steps"'
    assert steps in html
    await server.client.post(action)
    html = (await server.client.get(f"/chats/{cut_off.chat}", headers=BROWSER)).text
    assert "This answer is paused" in html
    assert 'data-state="paused"' in html
    assert steps in html
