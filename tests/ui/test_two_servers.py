"""Two servers on one PostgreSQL: the same chats, live on both, each run once."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.support.app_server import AppServer, refusal, text_of
from tests.support.kept import Restarts, page_of, shows, until
from tests.support.scripted_provider import ScriptedProvider, breaks, calls, says
from tests.support.stores import on
from web.chats.chat import Turn
from web.chats.journal.journal import TurnBegun, TurnSent, entry_to_event
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.values.events import RunResult
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


@pytest.fixture
def database_kind() -> str:
    return "postgresql"


async def test_a_run_of_one_server_is_live_on_the_other_and_the_chat_is_busy_there(
    stage: Restarts,
) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("The first half, "), go_on, TextChunk("the second."), ModelDone("end_turn")]
    )
    other = ScriptedProvider(says("From the other."))
    async with stage.server(provider) as one, stage.server(other) as two:
        chat = await one.new_chat(title="Shared")
        await shows(two, chat, "Shared")
        run = await one.send(chat, "Tell me")
        await shows(two, chat, "The first half,")
        told = await two.chat(chat)
        assert told["active_run"] == run
        answer = await two.client.post(f"/api/chats/{chat}/messages", json={"text": "Me too"})
        assert refusal(answer) == (409, "session_conflict")
        waits = await two.send(chat, "Then me", queue=True)
        go_on.set()
        assert text_of(await two.events(run)) == "The first half, the second."
        await shows(two, chat, "the second.")
        assert text_of(await one.events(waits)) == "From the other." or other.requests == []
        await shows(one, chat, "Then me")
        await shows(two, chat, "Then me")
        assert len(provider.requests) + len(other.requests) == 2


async def test_both_servers_list_what_either_makes_renames_and_deletes(stage: Restarts) -> None:
    async with stage.server() as one, stage.server() as two:
        await two.client.get("/")
        chat = await one.new_chat(title="New here")

        async def listed(words: str) -> bool:
            return words in (await two.client.get("/")).text

        await until(lambda: listed("New here"))
        await one.client.patch(f"/api/chats/{chat}", json={"title": "Renamed"})
        await until(lambda: listed("Renamed"))
        assert not await listed("New here")
        assert "Renamed" in await page_of(two, chat)
        await one.client.patch(f"/api/chats/{chat}", json={"title": "Again"})
        await shows(two, chat, "Again")
        await one.client.delete(f"/api/chats/{chat}")

        async def gone() -> bool:
            return (await two.client.get(f"/chats/{chat}")).status_code == 404

        await until(gone)


async def test_a_question_of_one_server_is_answered_on_the_other_and_a_run_stopped_there(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(calls(WRITE), says("Written."), [TextChunk("On"), asyncio.Event()])
    async with stage.server(provider) as one, stage.server() as two:
        chat = await one.new_chat()
        run = await one.send(chat, "Write")
        key = (await one.wait_for(run, "approval_required")).data["key"]
        await shows(two, chat, "note.txt")
        answer = await two.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"}
        )
        assert answer.status_code == 200, answer.text
        assert text_of(await one.events(run)) == "Written."
        endless = await one.send(chat, "Go on")
        await one.wait_for(endless, "text_delta")

        async def seen() -> bool:
            return bool((await two.chat(chat))["active_run"] == endless)

        await until(seen)
        await two.client.post(f"/api/runs/{endless}/stop")
        last = (await one.events(endless))[-1]
        assert last.data["status"] == "cancelled"


async def test_the_chats_of_a_server_that_died_are_free_within_the_time_of_a_lease(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    provider = ScriptedProvider([TextChunk("Cut "), asyncio.Event()])
    async with stage.server(ScriptedProvider(says("Free again."))) as two:
        async with stage.server(provider) as one:
            chat = await one.new_chat()
            run = await one.send(chat, "Tell me")
            await one.wait_for(run, "text_delta")
            await shows(two, chat, "Cut")
        events = await two.events(run)
        assert events[-1].data["reason"] == "interrupted"
        await shows(two, chat, "so it is incomplete")
        assert text_of(await two.events(await two.send(chat, "Again"))) == "Free again."


async def test_the_same_request_on_two_servers_at_once_is_one_run(stage: Restarts) -> None:
    rounds = 4
    providers = [ScriptedProvider(*[says("Once.")] * rounds) for _ in range(2)]
    async with stage.server(providers[0]) as one, stage.server(providers[1]) as two:
        for number in range(rounds):
            chat = await one.new_chat()
            await shows(two, chat, "New chat")
            sent = {"text": "Hi", "request_id": "q", "queue": bool(number % 2)}
            path = f"/api/chats/{chat}/messages"
            answers = await asyncio.gather(*(s.client.post(path, json=sent) for s in (one, two)))
            assert [answer.status_code for answer in answers] == [202, 202]
            (run,) = {answer.json()["run_id"] for answer in answers}
            for server in (one, two):
                assert text_of(await server.events(run)) == "Once."
                assert (await until(partial(_ended, server, run)))["chat_id"] == chat
                assert await server.send(chat, "Hi", request_id="q") == run
            await until(partial(_at_rest, two, chat))
            told = await two.chat(chat)
            assert [m["role"] for m in told["messages"]] == ["user", "assistant"]
            assert told["queue"] == []
        assert sum(len(each.requests) for each in providers) == rounds


async def _ended(server: AppServer, run: str) -> dict[str, object] | None:
    told = await server.status(run)
    return told if told["state"] == "ended" else None


async def _at_rest(server: AppServer, chat: str) -> bool:
    told = await server.chat(chat)
    return told["state"] == "idle" and len(told["messages"]) == 2


async def test_one_request_for_two_messages_on_two_servers_at_once_sends_one_of_them(
    stage: Restarts,
) -> None:
    providers = [ScriptedProvider(says("Answer.")) for _ in range(2)]
    async with stage.server(providers[0]) as one, stage.server(providers[1]) as two:
        chat = await one.new_chat()
        await shows(two, chat, "New chat")
        answers = await asyncio.gather(
            *(
                server.client.post(
                    f"/api/chats/{chat}/messages",
                    json={"text": text, "request_id": "q", "queue": True},
                )
                for server, text in ((one, "This"), (two, "That"))
            )
        )
        codes = {answer.status_code: answer for answer in answers}
        assert set(codes) == {202, 409}
        assert refusal(codes[409])[1] == "request_id_reused"
        run = codes[202].json()["run_id"]
        for server in (one, two):
            assert text_of(await server.events(run)) == "Answer."
        assert sum(len(each.requests) for each in providers) == 1


async def test_a_request_for_a_chat_makes_one_on_all_servers_and_after_a_restart(
    stage: Restarts,
) -> None:
    async def made(server: AppServer, request: str = "make") -> str:
        return await server.new_chat(title="Once", request_id=request)

    async with stage.server() as one, stage.server() as two:
        both = await asyncio.gather(made(one), made(two), made(one), made(two))
        chat, other = both[0], await made(two, "another")
        assert set(both) == {chat}
        assert other != chat
    async with stage.server() as one:
        assert await made(one) == chat
        assert {each["id"] for each in (await one.client.get("/api/chats")).json()} == {chat, other}
        await one.client.delete(f"/api/chats/{chat}")
        again = await made(one)
        assert again not in (chat, other)
    async with stage.server() as two:
        assert await made(two) == again


async def test_a_program_gets_the_messages_of_a_run_that_another_server_has(
    stage: Restarts,
) -> None:
    calculate = calls(("calculate", {"expression": "6 * 7"}), text="I count.")
    provider = ScriptedProvider(says("Hello."), calculate, [TextChunk("So "), asyncio.Event()])
    async with stage.server(provider) as one:
        chat = await one.new_chat()
        await one.events(await one.send(chat, "Hi"))
        async with stage.server() as two:
            await shows(two, chat, "Hello.")
            async with stage.server() as three:
                run = await one.send(chat, "Count", queue=True)

                async def told(server: AppServer) -> list[dict[str, object]]:
                    messages = (await server.chat(chat))["messages"]
                    return list(messages) if "So " in str(messages) else []

                known = [await until(partial(told, server)) for server in (two, three)]
                assert known[0] == known[1]
                roles = ["user", "assistant", "user", "assistant", "tool", "assistant"]
                assert [each["role"] for each in known[0]] == roles
                whole = (await one.chat(chat))["messages"]
                assert [each["id"] for each in known[0][:-1]] == [each["id"] for each in whole]
                assert known[0][-1]["id"] == f"{run}-3"


@on("postgresql", full="sqlite")
async def test_a_run_is_known_on_all_servers_once_a_message_was_taken(stage: Restarts) -> None:
    """A program may come by a proxy that sends each request to another one."""
    rounds = 3
    provider = ScriptedProvider(*[says("Hello.")] * rounds)
    async with stage.server(provider) as one, stage.server() as two:
        chat = await one.new_chat()
        await shows(two, chat, "New chat")
        for _ in range(rounds):
            run = await one.send(chat, "Hi", queue=True)
            assert (await two.status(run))["chat_id"] == chat
            assert text_of(await two.events(run)) == "Hello."


@pytest.mark.parametrize("backend", ["none", "the same"])
async def test_a_run_that_is_tried_again_on_two_servers_at_once_is_run_once(
    stage: Restarts, backend: str
) -> None:
    if backend == "none":
        stage.settings["backend"] = "none"
    failing = ScriptedProvider(breaks("Half", transient=False), says("Whole."))
    other = ScriptedProvider(says("Whole."))
    async with stage.server(failing) as one, stage.server(other) as two:
        chat = await one.new_chat()
        run = await one.send(chat, "Tell me")
        await one.events(run)
        await until(partial(_has_failed, one, chat))
        await until(partial(_has_failed, two, chat))
        answers = await asyncio.gather(
            *(server.client.post(f"/api/runs/{run}/retry") for server in (one, two))
        )
        (again,) = {each.json()["run_id"] for each in answers if each.status_code == 202}
        # Whoever heard of the other in time says that the chat is busy, or that it is done.
        assert {each.status_code for each in answers} <= {202, 404, 409}
        for server in (one, two):
            assert text_of(await server.events(again)) == "Whole."
            await until(partial(_at_rest, server, chat))
        assert len(failing.requests) + len(other.requests) == 2


async def _has_failed(server: AppServer, chat: str) -> bool:
    told = await server.chat(chat)
    return told["state"] == "failed" and told["active_run"] is None


@on("sqlite")
async def test_a_run_that_was_told_of_before_the_one_before_it_ended_is_known(
    stage: Restarts,
) -> None:
    """What others write comes run by run, and its order is that of no clock."""
    stage.settings["backend"] = "none"
    other = await stage.place.backend()
    async with stage.server() as server:
        chat = await server.new_chat()
        first, second = (Turn(f"{chat}{each}", each, "openai:one", each) for each in ("a", "b"))
        async with await other.sessions.acquire(LOCAL_IDENTITY, chat):
            journal = f"journal-of-{chat}"
            entries = (TurnSent(first), TurnBegun(first, 1.0), TurnBegun(second, 2.0))
            other.events.append(journal, [entry_to_event(each) for each in entries])
            await other.events.flush(journal)
            # It is asked for while the end of the first is on its way.
            known = asyncio.ensure_future(server.client.get(f"/api/runs/{second.run_id}"))
            await server.chat(chat)
            other.events.append(first.run_id, [RunResult("completed", "")])
            await other.events.flush(first.run_id)
            answer = await known
            assert answer.status_code == 200, answer.text
            other.events.append(second.run_id, [RunResult("completed", "")])
            await other.events.flush(second.run_id)
