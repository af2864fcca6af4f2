"""A server that is killed in the middle of an answer: the next one goes on with it, and the page
that was open shows it, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.app_server import numbers, text_of
from tests.support.kept import until
from tests.support.killable import (
    SECONDS,
    Servers,
    by_prompt,
    calls,
    half,
    killable_servers,
    rest,
    says,
)
from tests.support.till import Till

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

full = pytest.mark.full
SQLITE = pytest.mark.parametrize("servers", ["sqlite"], indirect=True)
HOLDS_BACK = ("sqlite", "postgresql")
"""The others go on by themselves, and refuse to be asked for something else."""
EACH = pytest.mark.parametrize(
    "servers",
    [pytest.param(kind, marks=full) for kind in (*HOLDS_BACK, "temporal", "temporal-worker")],
    indirect=True,
)
THOSE_WHO_ASK = pytest.mark.parametrize(
    "servers", [pytest.param(kind, marks=full) for kind in HOLDS_BACK], indirect=True
)


@pytest.fixture
async def servers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Servers]:
    async with killable_servers(request.param, tmp_path) as servers:
        yield servers


@pytest.fixture
def till(tmp_path: Path) -> Iterator[Till]:
    till = Till(tmp_path / "till")
    yield till
    till.close()


@SQLITE
async def test_the_open_page_comes_back_by_itself_and_shows_the_answer_once(
    servers: Servers, page: Page
) -> None:
    servers.model.script(half("The first half. "), says("All of it."))
    async with servers.server() as server:
        chat = await server.new_chat()
        await page.goto(f"{server.address}/chats/{chat}")
        run = await server.send(chat, "Tell me all")
        log = page.get_by_role("log")
        await expect(log).to_contain_text("The first half.")
        message = page.get_by_label("Message", exact=True)
        await message.fill("what I was typing")
        seen = numbers([await server.wait_for(run, "text_delta")])
        server.kill()
    async with servers.server("--port", server.port) as server:
        await expect(log).to_contain_text("All of it.", timeout=30_000)
        await expect(log).not_to_contain_text("The first half.")
        await expect(log.get_by_text("Tell me all")).to_have_count(1)
        await expect(log.get_by_text("the answer goes on below")).to_have_count(1)
        await expect(message).to_have_value("what I was typing")
        events = await server.events(run)
        assert numbers(events) == list(range(1, len(events) + 1))
        assert numbers(await server.events(run, seen[0])) == numbers(events)[seen[0] :]
        assert await rest(server, chat) == ["Tell me all", "All of it."]


@EACH
async def test_a_server_that_is_killed_twice_and_while_it_resumes_loses_and_doubles_nothing(
    servers: Servers,
) -> None:
    servers.model.script(half("One. "), half("Two. "), half("Three. "))
    async with servers.server() as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        waits = await server.send(chat, "And then?", queue=True)
        server.kill()
    for count in (2, 3):
        async with servers.server() as server:

            async def asked(count: int = count) -> bool:
                return len(servers.model.requests) >= count

            await until(asked, SECONDS)
            server.kill()
    servers.model.default = by_prompt({"Tell me all": "All of it.", "And then?": "Nothing."})
    for _ in range(3):
        # As soon as it listens: perhaps before it has looked for what was cut off.
        async with servers.server() as server:
            server.kill()
    async with servers.server() as server:
        events = await server.events(run)
        assert numbers(events) == list(range(1, len(events) + 1))
        assert [event.type for event in events].count("run_result") == 1
        assert (await server.events(waits))[-1].data["status"] == "completed"
        assert await rest(server, chat) == ["Tell me all", "All of it.", "And then?", "Nothing."]


@EACH
@pytest.mark.parametrize("how", ["result", "retry", "abort"])
async def test_of_a_call_that_may_have_run_a_person_says_what_became_of_it(
    servers: Servers, till: Till, how: str
) -> None:
    servers.model.script(calls("till__pay", amount=3), says("Paid."))
    options = ("--mcp-config", str(till.configuration()))
    async with servers.server(*options) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Pay")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
        await till.began()
        waits = await server.send(chat, "And then?", queue=True)
        server.kill()
    till.let_go("nobody hears it")
    async with servers.server(*options) as server:
        asked = await server.wait_for(run, "recovery_required")
        told = await server.chat(chat)
        assert [each["key"] for each in told["recoveries"]] == [asked.data["key"]]
        assert till.paid == 1
        servers.model.default = says("Nothing.")
        path = f"/api/runs/{run}/recoveries/{asked.data['key']}"
        answer = await server.client.post(path, json={"how": how, "text": "It was 3."})
        assert answer.status_code == 202, answer.text
        if how == "retry":
            await till.began()
            till.let_go("3 again")
        last = (await server.events(run))[-1]
        assert last.data["status"] == ("cancelled" if how == "abort" else "completed")
        assert (await server.events(waits))[-1].data["status"] == "completed"
        assert till.paid == (2 if how == "retry" else 1)
        await rest(server, chat)


@EACH
async def test_a_question_that_was_open_is_asked_once_and_answered_after_the_kill(
    servers: Servers,
) -> None:
    servers.model.script(calls("write_file", path="note.txt", content="hello"), says("Written."))
    async with servers.server() as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write hello to note.txt")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        server.kill()
    async with servers.server() as server:

        async def asked() -> list[str]:
            return [each["key"] for each in (await server.chat(chat))["questions"]]

        assert await until(asked, SECONDS) == [key]
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
        events = await server.events(run)
        assert text_of(events) == "Written."
        assert [each.data["is_error"] for each in events if each.type == "tool_result"] == [False]
        assert [event.type for event in events].count("approval_required") == 1
        assert (await server.client.get(f"/api/chats/{chat}/files")).json() != []


@THOSE_WHO_ASK
async def test_with_ask_a_killed_run_stands_still_until_a_person_says_so(servers: Servers) -> None:
    servers.model.script(half("The first half. "))
    async with servers.server("--resume", "ask") as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
        server.kill()
    async with servers.server("--resume", "ask") as server:

        async def stands() -> bool:
            return bool((await server.status(run))["state"] == "paused")

        await until(stands)
        assert len(servers.model.requests) == 1
        servers.model.default = says("All of it.")
        answer = await server.client.post(f"/api/runs/{run}/resume")
        assert answer.status_code == 202, answer.text
        assert (await server.events(run))[-1].data["text"] == "All of it."


@full
@pytest.mark.parametrize("servers", ["postgresql"], indirect=True)
async def test_the_server_that_lives_takes_over_what_another_one_was_killed_at(
    servers: Servers,
) -> None:
    """Of a chat that it has loaded and of one that it has not; exactly once each."""
    servers.model.script(half("Cut "), half("Cut "))
    async with servers.server() as living:
        async with servers.server() as server:
            chats = [await server.new_chat(), await server.new_chat()]
            runs = [await server.send(chat, "Tell me") for chat in chats]
            for run in runs:
                await server.wait_for(run, "text_delta")
            assert (await living.chat(chats[0]))["state"] == "working"
            servers.model.default = says("All of it.")
            server.kill()
        for chat, run in zip(chats, runs, strict=True):

            async def over(run: str = run) -> bool:
                answer = await living.client.get(f"/api/runs/{run}")
                return answer.status_code == 200 and answer.json()["state"] == "ended"

            await until(over, 20)
            events = await living.events(run)
            assert numbers(events) == list(range(1, len(events) + 1))
            assert events[-1].data["status"] == "completed"
            assert await rest(living, chat) == ["Tell me", "All of it."]
        assert len(servers.model.requests) == 4
