"""Runs that are written down: a server that ends in the middle of one leaves it to the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.app_server import numbers, text_of
from tests.support.kept import Restarts, at_rest, page_of, shows, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import on
from web.harness.runtime.backend import executions_of
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import Stores, open_stores
from web.harness.values.events import RunResult
from web.harness.values.model import TextChunk

pytestmark = [pytest.mark.anyio, on("sqlite", full="postgresql")]

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


def endless(*texts: str) -> ScriptedProvider:
    """A model that says this and then nothing more."""
    return ScriptedProvider([*map(TextChunk, texts), asyncio.Event()])


async def cut_off(stage: Restarts, *texts: str, queued: str = "") -> tuple[str, str]:
    """A chat whose server ended in the middle of an answer, and the run; perhaps another message
    waits for it."""
    async with stage.server(endless(*texts)) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        if queued:
            await server.send(chat, queued, queue=True)
    return chat, run


@asynccontextmanager
async def another_server(stage: Restarts) -> AsyncIterator[Stores]:
    """The stores as a server has them that does what the test says."""
    stores = await open_stores(stage.place.address, now=lambda: 12.5)
    try:
        yield stores
    finally:
        await stores.aclose()


async def test_a_run_that_was_cut_off_goes_on_by_itself_and_is_shown_once(stage: Restarts) -> None:
    chat, run = await cut_off(stage, "The first half. ", queued="And then?")
    provider = ScriptedProvider(says("All of it."), says("Nothing."))
    async with stage.server(provider) as server:
        events = await server.events(run)
        assert events[-1].data["status"] == "completed"
        assert numbers(events) == list(range(1, len(events) + 1))
        types = [event.type for event in events]
        assert types.count("run_result") == types.count("attempt_reset") == 1
        told = await at_rest(server, chat)
        assert [each["content"][0]["text"] for each in told["messages"]] == [
            *("Tell me all", "All of it.", "And then?", "Nothing.")
        ]
        page = await page_of(server, chat)
        assert page.count("All of it.") == 1
        assert "The first half." not in page
        assert "The server was stopped here; the answer goes on below." in page
        assert [each.messages[-1].text for each in provider.requests] == [
            *("Tell me all", "And then?")
        ]
        assert told["turns"] == 2
        assert told["usage"]["output_tokens"] == 2
    async with stage.server() as server:
        assert await server.chat(chat) == told
        assert await page_of(server, chat) == page
        assert await server.events(run, events[3].id or 0) == events[4:]


async def test_with_ask_a_run_stands_still_until_a_person_says_go_on(stage: Restarts) -> None:
    chat, run = await cut_off(stage, "The first half. ", queued="And then?")
    stage.settings["resume"] = "ask"
    provider = ScriptedProvider(says("All of it."), says("Nothing."))
    async with stage.server(provider) as server:
        page = await shows(server, chat, "Leave it")
        assert page.count("The first half.") == 1
        assert (await server.status(run))["state"] == "paused"
        (waits,) = (each["run_id"] for each in (await server.chat(chat))["queue"])
        for verb in ("pause", "resume", "leave"):
            answer = await server.client.post(f"/api/runs/{waits}/{verb}")
            assert answer.json()["code"] == "session_conflict"
        assert not provider.requests
        twice = [server.client.post(f"/api/runs/{run}/resume") for _ in range(2)]
        assert [answer.status_code for answer in await asyncio.gather(*twice)] == [202, 202]
        assert text_of(await server.events(run)).endswith("All of it.")
        told = await at_rest(server, chat)
        assert [each["text"] for each in told["messages"][-1]["content"]] == ["Nothing."]
        assert "Leave it" not in await page_of(server, chat)


async def test_a_run_that_is_left_ends_as_incomplete_and_what_waited_follows(
    stage: Restarts,
) -> None:
    chat, run = await cut_off(stage, "The first half. ", queued="And then?")
    stage.settings["resume"] = "ask"
    async with stage.server(ScriptedProvider(says("Nothing."))) as server:
        await shows(server, chat, "Leave it")
        answer = await server.client.post(f"/api/runs/{run}/leave")
        assert answer.status_code == 202, answer.text
        last = (await server.events(run))[-1]
        assert (last.data["status"], last.data["reason"]) == ("failed", "interrupted")
        told = await at_rest(server, chat)
        texts = [each["content"][0]["text"] for each in told["messages"]]
        assert texts == ["Tell me all", "The first half. ", "And then?", "Nothing."]
        page = await page_of(server, chat)
        assert page.count("The first half.") == page.count("so it is incomplete") == 1
        again = await server.client.post(f"/api/runs/{run}/leave")
        assert again.json()["code"] == "run_ended"
    async with stage.server() as server:
        assert await server.chat(chat) == told


async def test_an_approval_that_waited_is_still_there_and_works(stage: Restarts) -> None:
    async with stage.server(ScriptedProvider(calls(WRITE, text="I write."))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write")
        key = (await server.wait_for(run, "approval_required")).data["key"]
    provider = ScriptedProvider(says("Written."), calls(WRITE), says("Once more."))
    async with stage.server(provider) as server:
        page = await shows(server, chat, "note.txt")
        assert "going on" not in page
        assert [each["key"] for each in (await server.chat(chat))["questions"]] == [key]
        path = f"/api/runs/{run}/approvals/{key}"
        answer = await server.client.post(path, json={"decision": "allow_chat"})
        assert answer.status_code == 200, answer.text
        again = await server.client.post(path, json={"decision": "deny"})
        assert again.json()["code"] == "decision_refused"
        events = await server.events(run)
        assert text_of(events) == "I write.Written."
        assert [event.type for event in events].count("approval_required") == 1
        await at_rest(server, chat)
        files = (await server.client.get(f"/api/chats/{chat}/files")).json()
        assert [each["path"] for each in files] == ["note.txt"]
        more = await server.events(await server.send(chat, "Again"))
        assert "approval_required" not in [event.type for event in more]


async def test_with_ask_a_run_that_goes_on_and_only_waits_stands_still_no_more(
    stage: Restarts,
) -> None:
    async with stage.server(ScriptedProvider(calls(WRITE))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write")
        await server.wait_for(run, "approval_required")
    stage.settings["resume"] = "ask"
    async with stage.server(ScriptedProvider(says("Written."))) as server:
        page = await shows(server, chat, "Leave it")
        # One thing to do stands out: the answer, which has the run go on as well.
        assert "Answering the question above has it go on as well." in page
        assert '<button class="btn">Go on</button>' in page
        await server.client.post(f"/api/runs/{run}/resume")

        async def goes_on() -> bool:
            page = await page_of(server, chat)
            return "Leave it" not in page and "Allow once" in page

        assert await until(goes_on)


async def test_a_run_is_paused_and_goes_on_after_a_restart(stage: Restarts) -> None:
    async with stage.server(endless("The first half. ")) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        answer = await server.client.post(f"/api/runs/{run}/pause")
        assert answer.status_code == 202, answer.text
        await shows(server, chat, "This answer is paused")
        assert (await server.chat(chat))["state"] == "paused"
    async with stage.server(ScriptedProvider(says("All of it."))) as server:
        await shows(server, chat, "This answer is paused")
        await server.client.post(f"/api/runs/{run}/resume")
        assert (await server.events(run))[-1].data["status"] == "completed"


@pytest.mark.full
async def test_a_run_that_one_server_paused_goes_on_at_another_and_the_first_shows_it(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(says("All of it."))
    async with stage.server(endless("Half. ")) as one, stage.server(provider) as two:
        chat = await one.new_chat()
        run = await one.send(chat, "Tell me all")
        await one.wait_for(run, "text_delta")
        await shows(two, chat, "Half.")
        await two.client.post(f"/api/runs/{run}/pause")
        for server in (one, two):
            await shows(server, chat, "This answer is paused")
        answer = await two.client.post(f"/api/runs/{run}/resume")
        assert answer.status_code == 202, answer.text
        for server in (one, two):
            page = await shows(server, chat, "All of it.")
            assert "Half." not in page
            assert "It was paused here; the answer goes on below." in page
            await at_rest(server, chat)
        assert (await one.chat(chat))["messages"] == (await two.chat(chat))["messages"]


async def test_a_paused_run_that_is_left_says_what_of_it_is_kept(stage: Restarts) -> None:
    async with stage.server(endless("The first half. ")) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        await server.client.post(f"/api/runs/{run}/pause")
        await shows(server, chat, "This answer is paused")
        await server.client.post(f"/api/runs/{run}/leave")
        last = (await server.events(run))[-1]
        assert (last.data["status"], last.data["reason"]) == ("cancelled", "left")
        page = await shows(server, chat, "Left while it was paused.")
        assert "what was half written is not" in page
        assert "The first half." not in page
        told = await at_rest(server, chat)
        assert [each["content"][0]["text"] for each in told["messages"]] == ["Tell me all"]


async def test_what_a_person_stopped_is_stopped_whoever_runs_it(stage: Restarts) -> None:
    async with stage.server(endless("The first half. ")) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        await server.client.post(f"/api/runs/{run}/stop")
        assert (await server.events(run))[-1].data["status"] == "cancelled"
        told = await at_rest(server, chat)
        assert [each["content"][0]["text"] for each in told["messages"]] == [
            *("Tell me all", "The first half. ")
        ]
    other, cut = await cut_off(stage, "Something. ", queued="And then?")
    stage.settings["resume"] = "ask"
    async with stage.server(ScriptedProvider(says("Nothing."))) as server:
        await shows(server, other, "Leave it")
        await server.client.post(f"/api/runs/{cut}/stop")
        assert (await server.events(cut))[-1].data["reason"] == "stopped"
        told = await at_rest(server, other)
        assert told["messages"][-1]["content"][0]["text"] == "Nothing."
        assert "Something." in await page_of(server, other)


async def test_a_run_whose_model_is_gone_says_so_and_can_be_left(stage: Restarts) -> None:
    chat, run = await cut_off(stage, "The first half. ")
    stage.settings["model"] = "openai:two"
    async with stage.server() as server:
        page = await shows(server, chat, "cannot go on as it is")
        assert "openai:one, is not offered here any more" in page

        async def stands_still() -> bool:
            return bool((await server.chat(chat))["state"] == "paused")

        await until(stands_still)
        refused = await server.client.post(f"/api/runs/{run}/resume")
        assert refused.json()["code"] == "runtime_differs"
        await server.client.post(f"/api/runs/{run}/leave")
        assert (await server.events(run))[-1].data["reason"] == "interrupted"
        await at_rest(server, chat)
        assert text_of(await server.events(await server.send(chat, "Now", model="openai:two")))


async def test_two_servers_the_one_that_lives_goes_on_with_the_runs_of_the_other_once(
    stage: Restarts,
) -> None:
    """Of a chat that it shows, and of one that nobody has asked it for."""
    provider = ScriptedProvider(says("All of it."))
    async with stage.server(provider) as two:
        async with stage.server(endless("Cut ")) as one:
            shown, unseen = await one.new_chat(), await one.new_chat()
            runs = [await one.send(chat, "Tell me") for chat in (shown, unseen)]
            for run in runs:
                await one.wait_for(run, "text_delta")
            await shows(two, shown, "Cut")
        for run in runs:

            async def ended(run: str = run) -> bool:
                answer = await two.client.get(f"/api/runs/{run}")
                return answer.status_code == 200 and answer.json()["state"] == "ended"

            await until(ended)
            events = await two.events(run)
            assert numbers(events) == list(range(1, len(events) + 1))
            assert events[-1].data["status"] == "completed"
        assert len(provider.requests) == 2
        assert "Cut" not in await page_of(two, shown)


@pytest.mark.full
async def test_only_one_of_two_servers_goes_on_with_a_run(stage: Restarts) -> None:
    chat, run = await cut_off(stage, "The first half. ")
    providers = [ScriptedProvider(says("All of it.")) for _ in range(2)]
    async with stage.server(providers[0]) as one, stage.server(providers[1]) as two:
        for server in (one, two):
            assert (await server.events(run))[-1].data["status"] == "completed"
            await at_rest(server, chat)
        assert sum(len(each.requests) for each in providers) == 1
        assert await one.events(run) == await two.events(run)


@pytest.mark.full
async def test_who_has_a_run_go_on_that_another_server_just_ended_is_told_no_error(
    stage: Restarts,
) -> None:
    chat, run = await cut_off(stage, "The first half. ")
    stage.settings["resume"] = "ask"
    async with stage.server() as server, another_server(stage) as another:
        await shows(server, chat, "Leave it")
        lease = await another.sessions.acquire(LOCAL_IDENTITY, chat)
        goes_on = asyncio.ensure_future(server.client.post(f"/api/runs/{run}/resume"))

        async def waits_for_the_chat() -> bool:
            return bool((await server.client.get("/api/health")).json()["running"])

        await until(waits_for_the_chat)
        executions = executions_of(another)
        execution, _ = await executions.begin(run)
        another.events.append(run, [RunResult("completed", "All of it.")])
        await executions.end_with(lease, await lease.read(), run, execution.fence, "completed")
        await lease.release()
        answer = await goes_on
        assert answer.status_code == 202, answer.text
        assert (await server.events(run))[-1].data["status"] == "completed"
        await at_rest(server, chat)


@pytest.mark.full
async def test_a_second_restart_and_a_third_lose_nothing(stage: Restarts) -> None:
    chat, run = await cut_off(stage, "One. ", queued="And then?")
    for text in ("Two. ", "Three. "):
        async with stage.server(endless(text)) as server:
            await shows(server, chat, text.strip())
            page = await page_of(server, chat)
            assert page.count("Tell me all") >= 1
            assert "One." not in page
    async with stage.server(ScriptedProvider(says("All of it."), says("Nothing."))) as server:
        events = await server.events(run)
        assert numbers(events) == list(range(1, len(events) + 1))
        told = await at_rest(server, chat)
        assert [each["content"][0]["text"] for each in told["messages"]] == [
            *("Tell me all", "All of it.", "And then?", "Nothing.")
        ]


async def test_a_retry_that_is_cut_off_goes_on_without_what_it_stands_for(stage: Restarts) -> None:
    async with stage.server(ScriptedProvider([TextChunk("Bad. "), asyncio.Event()])) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        await server.client.post(f"/api/runs/{run}/stop")
        await at_rest(server, chat)
        answer = await server.client.post(f"/api/runs/{run}/retry")
        again = answer.json()["run_id"]
        await server.wait_for(again, "text_delta")
    provider = ScriptedProvider(says("Good."))
    async with stage.server(provider) as server:
        await server.events(again)
        told = await at_rest(server, chat)
        assert [each["content"][0]["text"] for each in told["messages"]] == [
            *("Tell me all", "Good.")
        ]
        assert len(provider.requests[0].messages) == 1
