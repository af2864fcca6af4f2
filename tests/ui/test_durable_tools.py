"""Tools of runs that were cut off: what nobody knows is asked, what is missing is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app_server import AppServer, StreamEvent
from tests.support.kept import Restarts, at_rest, page_of, shows
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.till import Till
from tests.ui.test_kept_servers import PROPOSAL, post
from web.harness.values.messages import ToolResultBlock

pytestmark = pytest.mark.anyio

PAY = ("till__pay", {"amount": 3})


@pytest.fixture
def till(tmp_path: Path) -> Iterator[Till]:
    till = Till(tmp_path / "till")
    yield till
    till.close()


async def connect(server: AppServer, chat: str, till: Till) -> None:
    await post(server, chat, f"/chats/{chat}/servers", target=till.command, name="till")
    match = PROPOSAL.search(await page_of(server, chat))
    assert match is not None
    await post(server, chat, match[1])
    await shows(server, chat, "till__pay")


async def cut_off_in_pay(stage: Restarts, till: Till) -> tuple[str, str]:
    async with stage.server(ScriptedProvider(calls(PAY, text="I pay. "))) as server:
        chat = await server.new_chat()
        await connect(server, chat, till)
        run = await server.send(chat, "Pay")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
        await till.began()
    assert till.paid == 1
    return chat, run


@pytest.mark.parametrize(
    "how",
    [
        "result",
        pytest.param("retry", marks=pytest.mark.full),
        pytest.param("abort", marks=pytest.mark.full),
    ],
)
async def test_of_a_call_that_nobody_knows_of_a_person_says_what_became_of_it(
    stage: Restarts, till: Till, how: str
) -> None:
    chat, run = await cut_off_in_pay(stage, till)
    provider = ScriptedProvider(says("Paid."))
    async with stage.server(provider) as server:
        event = await server.wait_for(run, "recovery_required")
        page = await shows(server, chat, "Run it again")
        assert "till__pay" in page
        assert not provider.requests
        if how == "retry":
            await connect(server, chat, till)
        path = f"/api/runs/{run}/recoveries/{event.data['key']}"
        answer = await server.client.post(path, json={"how": how, "text": "It was 3."})
        assert answer.status_code == 202, answer.text
        again = await server.client.post(path, json={"how": "abort"})
        assert again.json()["code"] == "decision_refused"
        if how == "retry":
            await till.began()
            till.let_go("It was 4.")
        last = (await server.events(run))[-1]
        told = await at_rest(server, chat)
        assert till.paid == (2 if how == "retry" else 1)
        if how == "abort":
            assert (last.data["status"], last.data["reason"]) == ("cancelled", "given_up")
            assert not provider.requests
            return
        assert last.data["text"] == "Paid."
        gave = provider.requests[0].messages[-1].content[0]
        assert isinstance(gave, ToolResultBlock)
        assert gave.text.startswith("It was 3." if how == "result" else "It was 4.")
        assert told["state"] == "idle"


async def test_a_call_waits_for_its_server_and_the_page_says_which_to_connect(
    stage: Restarts, till: Till
) -> None:
    async with stage.server(ScriptedProvider(calls(PAY, text="I pay. "))) as server:
        chat = await server.new_chat()
        await connect(server, chat, till)
        run = await server.send(chat, "Pay")
        key = (await server.wait_for(run, "approval_required")).data["key"]
    async with stage.server(ScriptedProvider(says("Paid."))) as server:
        page = await shows(server, chat, "Connect till, then it goes on")
        assert "error" not in [event.type for event in await so_far(server, run)]
        assert f"approvals/{key}" in page
        answer = await server.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"}
        )
        assert answer.status_code == 200, answer.text
        match = PROPOSAL.search(await page_of(server, chat))
        assert match is not None
        await post(server, chat, match[1])
        await till.began()
        till.let_go("3 paid")
        assert (await server.events(run))[-1].data["text"] == "Paid."
        assert "Connect till" not in await page_of(server, chat)


@pytest.mark.full
async def test_a_call_whose_server_is_gone_for_good_is_given_up(
    stage: Restarts, till: Till
) -> None:
    async with stage.server(ScriptedProvider(calls(PAY, text="I pay. "))) as server:
        chat = await server.new_chat()
        await connect(server, chat, till)
        run = await server.send(chat, "Pay")
        await server.wait_for(run, "approval_required")
    async with stage.server(ScriptedProvider(says("Nothing was paid."))) as server:
        await shows(server, chat, "Connect till, then it goes on")
        await server.client.post(f"/api/runs/{run}/leave")
        assert (await server.events(run))[-1].data["reason"] == "interrupted"
        await at_rest(server, chat)
        more = await server.events(await server.send(chat, "And?"))
        assert more[-1].data["text"] == "Nothing was paid."
    assert till.paid == 0


async def so_far(server: AppServer, run: str) -> list[StreamEvent]:
    """The events of a run that there are now."""
    found: list[StreamEvent] = []
    async with server.stream(run) as events:
        async for event in events:
            found.append(event)
            if event.type == "approval_required":
                break
    return found
