"""What a person does with a run or a message of which another server may know more."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.app_server import text_of
from tests.support.kept import Restarts, page_of, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import SqlPlace
from web.chats.chat import Turn
from web.chats.journal.journal import (
    StopAsked,
    TurnBegun,
    TurnSent,
    TurnTakenBack,
    entry_from_event,
    entry_to_event,
    journal_of,
)
from web.harness.runtime.backend import executions_of
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Submission
from web.harness.values.events import EventBody, RunResult, TextDelta
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("first", ["begun", "taken back"])
async def test_of_beginning_with_a_message_and_taking_it_back_the_first_counts(
    first: str, stage: Restarts, place: SqlPlace
) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("One."), go_on, ModelDone("end_turn")], [TextChunk("Two."), asyncio.Event()]
    )
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "First"), "text_delta")
        waits = await server.send(chat, "Second", queue=True)
        executions = executions_of(await place.backend())
        if first == "begun":
            about = {"model": "openai:one", "instead_of": ""}
            await executions.submit(
                Submission(waits, LOCAL_IDENTITY, chat, waits, "Second", about=about)
            )
        await server.client.post(f"/api/runs/{waits}/stop")
        if first == "taken back":

            async def is_ended() -> bool:
                found = await executions.find(waits)
                return found is not None and found.status == "ended"

            assert await until(is_ended), "whoever begins with it later is told"
        else:

            async def is_told() -> bool:
                return any(each.kind == "cancel" for each in await executions.answers(waits))

            assert await until(is_told), "whoever has begun with it is told"
        go_on.set()
        last = (await server.events(waits))[-1].data
        assert last["status"] == "cancelled"
        assert (last["reason"] == "taken_back") == (first == "taken back")

        async def is_idle() -> bool:
            return bool((await server.chat(chat))["state"] == "idle")

        assert await until(is_idle)
        assert first == "begun" or len(provider.requests) == 1


async def test_without_a_backend_a_message_that_was_taken_back_elsewhere_is_not_begun(
    stage: Restarts, place: SqlPlace
) -> None:
    stage.settings["backend"] = "none"
    go_on = asyncio.Event()
    provider = ScriptedProvider([TextChunk("One."), go_on, ModelDone("end_turn")], says("Two."))
    other = (await place.backend()).events
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "First"), "text_delta")
        waits = await server.send(chat, "Second", queue=True)
        # It is begun at once, before the server has heard of that.
        other.append(journal_of(chat), [entry_to_event(TurnTakenBack(waits))])
        await other.flush(journal_of(chat))
        go_on.set()
        other.append(waits, [RunResult("cancelled", "", reason="taken_back")])

        async def is_idle() -> bool:
            told = await server.chat(chat)
            return bool(told["state"] == "idle" and not told["queue"])

        await until(is_idle)
        assert (await server.events(waits))[-1].data["reason"] == "taken_back"
        assert len(provider.requests) == 1
        before = await server.chat(chat)
        assert len(before["messages"]) == 2
        assert "Second" not in await page_of(server, chat)
    async with stage.server() as server:
        assert (await server.chat(chat))["messages"] == before["messages"]
        assert "Second" not in await page_of(server, chat)


async def test_without_a_backend_a_message_that_was_begun_elsewhere_is_stopped_there(
    stage: Restarts, place: SqlPlace
) -> None:
    stage.settings["backend"] = "none"
    stores = await place.backend()
    journal, other = "", stores.events

    async def write(run: str, *bodies: EventBody) -> None:
        other.append(run, bodies)
        await other.flush(run)

    async with stage.server() as server:
        chat = await server.new_chat()
        journal, first = journal_of(chat), Turn(f"{chat}first", "First", "openai:one", "q")
        async with await stores.sessions.acquire(LOCAL_IDENTITY, chat):
            await write(
                journal, entry_to_event(TurnSent(first)), entry_to_event(TurnBegun(first, 1.0))
            )

            async def is_busy() -> bool:
                return bool((await server.chat(chat))["active_run"] == first.run_id)

            await until(is_busy)
            waits = await server.send(chat, "Second", queue=True)
            second = Turn(waits, "Second", "openai:one", "r")
            await write(first.run_id, RunResult("completed", ""))
            await write(journal, entry_to_event(TurnBegun(second, 2.0)))
            # Before the server has heard of that.
            await server.client.post(f"/api/runs/{waits}/stop")

            async def is_told() -> bool:
                entries = [entry_from_event(e.body) for e in (await other.read(journal)).events]
                return StopAsked(waits) in entries

            await until(is_told)
            await write(waits, TextDelta("Half", f"{waits}-1"))
            await write(waits, RunResult("cancelled", "Half", reason="stopped"))
        assert (await server.events(waits))[-1].data["reason"] == "stopped"

        async def is_shown() -> bool:
            return "Half" in await page_of(server, chat)

        await until(is_shown)


async def test_a_run_that_is_over_on_the_page_alone_is_settled(
    stage: Restarts, place: SqlPlace
) -> None:
    async with stage.server(ScriptedProvider(says("One."))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "First")
        await server.events(run)
    await place.run(
        "UPDATE harness_executions SET status = 'running', result_status = '', state = NULL"
    )
    provider = ScriptedProvider(says("Two."))
    async with stage.server(provider) as server:
        await server.chat(chat)
        second = await server.send(chat, "Second", queue=True)
        assert text_of(await server.events(second)) == "Two."
        found = await executions_of(await place.backend()).find(run)
        assert found is not None
        assert (found.status, found.result_status) == ("ended", "completed")
        assert len(provider.requests) == 1


async def test_with_ask_an_answer_counts_before_it_is_known_that_the_run_stands_still(
    stage: Restarts, place: SqlPlace
) -> None:
    write = ("write_file", {"path": "note.txt", "content": "hello"})
    async with stage.server(ScriptedProvider(calls(write))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write")
        key = (await server.wait_for(run, "approval_required")).data["key"]
    stage.settings["resume"] = "ask"
    sessions = await place.sessions()
    lease = await sessions.acquire(LOCAL_IDENTITY, chat)
    async with stage.server(ScriptedProvider(says("Written."))) as server:
        assert "Leave it" not in await page_of(server, chat)
        path = f"/api/runs/{run}/approvals/{key}"
        answer = await server.client.post(path, json={"decision": "allow"})
        assert answer.status_code == 200, answer.text
        await lease.release()
        assert text_of(await server.events(run)) == "Written."


async def test_a_chat_whose_run_stands_still_is_paused_and_says_what_to_do(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider([TextChunk("Half"), asyncio.Event()])
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "Tell me"), "text_delta")
    stage.settings["resume"] = "ask"
    async with stage.server() as server:

        async def told() -> bool:
            return "Leave it" in await page_of(server, chat)

        await until(told)
        shown = await server.chat(chat)
        assert (shown["state"], shown["questions"]) == ("paused", [])
        refused = await server.client.post(f"/api/chats/{chat}/messages", json={"text": "And?"})
        assert refused.status_code == 409
        assert '"Go on" or "Leave it"' in refused.json()["hint"]
        await server.send(chat, "Then this", queue=True)
        waits = "Waits until the answer above goes on or is left: </span>Then this"
        assert waits in await page_of(server, chat)
