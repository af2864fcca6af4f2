"""What a server said yes to holds, whatever the store and other servers do meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.app_server import text_of
from tests.support.kept import Restarts, at_rest, page_of, until
from tests.support.scripted_provider import ScriptedProvider, breaks, says
from web.chats.chat import Turn
from web.chats.journal.journal import TurnBegun, entry_to_event
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Submission
from web.harness.sessions.opening import Stores, open_stores
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize(
    "backend", ["the same", pytest.param("none", marks=pytest.mark.full)]
)


@asynccontextmanager
async def another_server(stage: Restarts) -> AsyncIterator[Stores]:
    """The stores as a server has them that does what the test says."""
    stores = await open_stores(stage.place.address, now=lambda: 12.5)
    try:
        yield stores
    finally:
        await stores.aclose()


def file_of(stage: Restarts) -> Path:
    return Path(stage.place.address.removeprefix("sqlite:///"))


def written_down(stage: Restarts, backend: str) -> None:
    if backend == "none":
        stage.settings["backend"] = "none"


@both_backends
@pytest.mark.parametrize("stops", [False, pytest.param(True, marks=pytest.mark.full)])
async def test_messages_that_were_taken_wait_for_a_store_that_fails_and_are_answered_in_order(
    stage: Restarts,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    backend: str,
    stops: bool,
) -> None:
    written_down(stage, backend)
    file, away = file_of(stage), tmp_path / "away"
    provider = ScriptedProvider(says("One."), says("Two."))
    async with another_server(stage) as other, stage.server(provider) as server:
        chat = await server.new_chat()
        # So that the first does not begin before the store fails.
        lease = await other.sessions.acquire(LOCAL_IDENTITY, chat)
        first = await server.send(chat, "first")
        second = await server.send(chat, "second", queue=True)
        file.rename(away)

        async def waits() -> bool:
            return "A message waits for the store" in caplog.text

        await until(waits)
        if stops:
            assert (await server.client.post(f"/api/runs/{first}/stop")).status_code == 202
        away.rename(file)
        await lease.release()
        ends = [(await server.events(run))[-1].data for run in (first, second)]
        told = await at_rest(server, chat)
    texts = [each["content"][0]["text"] for each in told["messages"]]
    if stops:
        assert [each["status"] for each in ends] == ["cancelled", "completed"]
        assert texts[-2:] == ["second", "One."]
    else:
        assert [each["text"] for each in ends] == ["One.", "Two."]
        assert texts == ["first", "One.", "second", "Two."]


@both_backends
async def test_a_failed_run_is_tried_again_once_on_all_servers_at_any_distance_in_time(
    stage: Restarts, backend: str
) -> None:
    written_down(stage, backend)
    one_says = ScriptedProvider(breaks("Half", transient=False), says("Whole."))
    two_says = ScriptedProvider(says("Whole."))
    async with (
        another_server(stage) as other,
        stage.server(one_says) as one,
        stage.server(two_says) as two,
    ):
        chat = await one.new_chat()
        run = await one.send(chat, "Tell me")
        await one.events(run)

        async def failed() -> bool:
            told = [await server.chat(chat) for server in (one, two)]
            return all(each["state"] == "failed" and not each["active_run"] for each in told)

        await until(failed)
        # The run of the first retry has not begun when the second is asked for.
        async with await other.sessions.acquire(LOCAL_IDENTITY, chat, wait=5):
            answers = [await one.client.post(f"/api/runs/{run}/retry")]

            async def heard() -> bool:
                return bool((await two.chat(chat))["queue"])

            await until(heard)
            answers.append(await two.client.post(f"/api/runs/{run}/retry"))
        (again,) = {each.json().get("run_id") for each in answers}
        for server in (one, two):
            assert text_of(await server.events(again)) == "Whole."
            told = await at_rest(server, chat)
            assert len(told["messages"]) == 2
            answers.append(await server.client.post(f"/api/runs/{run}/retry"))
        assert [each.json()["run_id"] for each in answers] == [again] * 4
        assert len(one_says.requests) + len(two_says.requests) == 2


@pytest.mark.full
async def test_a_retry_that_was_taken_back_can_be_asked_for_again(stage: Restarts) -> None:
    provider = ScriptedProvider(breaks("Half", transient=False), says("Whole."))
    async with another_server(stage) as other, stage.server(provider) as one:
        chat = await one.new_chat()
        run = await one.send(chat, "Tell me")
        await one.events(run)
        await at_rest(one, chat)
        async with stage.server(provider) as two:
            async with await other.sessions.acquire(LOCAL_IDENTITY, chat, wait=5):
                await two.chat(chat)
                again = (await one.client.post(f"/api/runs/{run}/retry")).json()["run_id"]

                async def waits() -> bool:
                    return bool((await two.chat(chat))["queue"])

                await until(waits)
                taken = await two.client.post(
                    f"/chats/{chat}/queue/{again}/take-back", headers={"HX-Request": "true"}
                )
                assert taken.is_success, taken.text
                assert (await one.events(again))[-1].data["reason"] == "taken_back"
                third = await two.client.post(f"/api/runs/{run}/retry")
            assert third.status_code == 202, third.text
            assert third.json()["run_id"] != again
            assert text_of(await one.events(third.json()["run_id"])) == "Whole."


@pytest.mark.parametrize("backend", ["none", pytest.param("the same", marks=pytest.mark.full)])
async def test_a_message_that_another_server_began_first_is_not_taken_back(
    stage: Restarts, backend: str
) -> None:
    written_down(stage, backend)
    go_on = asyncio.Event()
    provider = ScriptedProvider([TextChunk("A"), go_on, ModelDone("end_turn")], says("B"))
    async with another_server(stage) as other, stage.server(provider) as server:
        chat = await server.new_chat()
        first = await server.send(chat, "first")
        await server.wait_for(first, "text_delta")
        turn = Turn(await server.send(chat, "second", queue=True), "second", "openai:one", "q")
        if backend == "none":
            # It is heard of behind the end of the run before.
            other.events.append(f"journal-of-{chat}", [entry_to_event(TurnBegun(turn, 1.0))])
            await other.events.flush(f"journal-of-{chat}")
        else:
            assert other.executions is not None
            begun = Submission(turn.run_id, LOCAL_IDENTITY, chat, turn.run_id, turn.text)
            await other.executions.submit(begun)
        path = f"/chats/{chat}/queue/{turn.run_id}/take-back"
        taken = asyncio.ensure_future(server.client.post(path, headers={"HX-Request": "true"}))
        if backend == "none":

            async def gone() -> bool:
                return not (await server.chat(chat))["queue"]

            await until(gone)
            go_on.set()
        answer = await taken
        assert answer.status_code == 409, answer.text
        assert "began to answer this message" in answer.text
        go_on.set()
        await page_of(server, chat)
