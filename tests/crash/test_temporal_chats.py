"""Chats over Temporal, whose server, workers and web process are killed one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.app_server import numbers
from tests.support.kept import until
from tests.support.killable import (
    SECONDS,
    Killable,
    Servers,
    calls,
    half,
    killable_servers,
    rest,
    says,
)
from tests.support.mcp_sdk import build_server, listening
from tests.support.temporal import TemporalServer, new_temporal_server
from tests.support.till import Till

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.anyio, pytest.mark.full]

UNREACHABLE = "Temporal does not answer; the answer goes on when it does."


@pytest.fixture
def temporal() -> Iterator[TemporalServer]:
    server = new_temporal_server()
    yield server
    server.stop()


@pytest.fixture
async def servers(temporal: TemporalServer, tmp_path: Path) -> AsyncIterator[Servers]:
    async with killable_servers("temporal", tmp_path, temporal) as servers:
        yield servers


@pytest.fixture
def till(tmp_path: Path) -> Iterator[Till]:
    till = Till(tmp_path / "till")
    yield till
    till.close()


async def waits_for(server: Killable, run: str, missing: str | None) -> None:
    async def look() -> bool:
        return bool((await server.status(run))["waits_for"] == missing)

    await until(look, SECONDS)


async def test_while_temporal_is_gone_the_page_says_so_and_the_answer_goes_on_when_it_is_back(
    servers: Servers, temporal: TemporalServer, till: Till, page: Page
) -> None:
    """A call that may not be repeated runs meanwhile, and what it gives is not lost."""
    servers.model.script(calls("till__pay", amount=3), says("Paid."))
    async with servers.server("--mcp-config", str(till.configuration())) as server:
        chat = await server.new_chat()
        await page.goto(f"{server.address}/chats/{chat}")
        run = await server.send(chat, "Pay")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
        await till.began()
        temporal.kill()
        log = page.get_by_role("log")
        await expect(log).to_contain_text(UNREACHABLE, timeout=SECONDS * 1000)
        await waits_for(server, run, "temporal")
        till.let_go("3 paid")
        temporal.start()
        events = await server.events(run)
        assert events[-1].data["text"] == "Paid."
        assert "recovery_required" not in [event.type for event in events]
        await expect(log).not_to_contain_text(UNREACHABLE)
        await waits_for(server, run, None)
        assert till.paid == 1
        assert await rest(server, chat) == ["Pay", "Paid."]


async def test_a_message_that_is_sent_while_temporal_is_gone_is_answered_when_it_is_back(
    servers: Servers, temporal: TemporalServer
) -> None:
    """Also by a server that was started meanwhile."""
    servers.model.script(says("Here."))
    temporal.kill()
    async with servers.server() as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Are you there?")
        await waits_for(server, run, "temporal")
        server.kill()
    async with servers.server() as server:
        await waits_for(server, run, "temporal")
        temporal.start()
        events = await server.events(run)
        assert numbers(events) == list(range(1, len(events) + 1))
        assert await rest(server, chat) == ["Are you there?", "Here."]


@pytest.mark.parametrize("works", [False, True], ids=["here", "worker"])
async def test_stop_works_while_temporal_is_gone_and_the_page_says_so_at_once(
    servers: Servers, temporal: TemporalServer, page: Page, works: bool
) -> None:
    """Also of an answer that a worker writes; the next message is answered when it is back."""
    servers.model.script(half("The first half. "))
    servers.works = works
    async with servers.server() as server:
        chat = await server.new_chat()
        await page.goto(f"{server.address}/chats/{chat}")
        run = await server.send(chat, "Tell me all")
        log, status = page.get_by_role("log"), page.locator("#status-line")
        await expect(log).to_contain_text("The first half.")
        temporal.kill()
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(status).to_contain_text("Stop")
        await asyncio.wait_for(servers.model.exchanges[0].client_gone.wait(), 5)
        events = await server.events(run)
        assert events[-1].data["status"] == "cancelled"
        assert [event.type for event in events].count("run_result") == 1
        assert numbers(events) == list(range(1, len(events) + 1))
        await expect(status).to_contain_text("Stopped")
        await expect(log).to_contain_text("The first half.")
        await expect(log).not_to_contain_text(UNREACHABLE)
        servers.model.default = says("Here.")
        following = await server.send(chat, "Are you there?")
        await waits_for(server, following, "temporal")
        temporal.start()
        assert (await server.events(following))[-1].data["text"] == "Here."
        assert (await rest(server, chat))[-2:] == ["Are you there?", "Here."]


async def test_a_worker_that_is_killed_costs_nothing_but_time_and_the_page_says_who_is_missing(
    servers: Servers,
) -> None:
    servers.model.script(half("The first half. "))
    with servers.worker() as worker:
        async with servers.server() as server:
            chat = await server.new_chat()
            run = await server.send(chat, "Tell me all")
            await server.wait_for(run, "text_delta")
            worker.kill()
            worker.wait(timeout=10)
            servers.model.default = says("All of it.")
            with servers.worker():
                events = await server.events(run)
            assert numbers(events) == list(range(1, len(events) + 1))
            assert "attempt_reset" in [event.type for event in events]
            assert await rest(server, chat) == ["Tell me all", "All of it."]
            assert len(servers.model.requests) == 2


async def test_a_worker_goes_on_while_the_server_of_the_page_is_dead(servers: Servers) -> None:
    servers.model.script(calls("write_file", path="note.txt", content="hello"))
    with servers.worker():
        async with servers.server() as server:
            chat = await server.new_chat()
            run = await server.send(chat, "Write hello to note.txt")
            key = (await server.wait_for(run, "approval_required")).data["key"]
            servers.model.default = half("It is ")
            await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
            await server.wait_for(run, "text_delta")
            server.serving.process.kill()
            server.serving.process.wait(timeout=10)
        servers.model.default = says("Never asked again.")
        async with servers.server() as server:
            # Nobody else than the worker has it, and its answer is under way: it is not begun anew.
            events = [await server.wait_for(run, "text_delta")]
            assert len(servers.model.requests) == 2
            answer = await server.client.post(f"/api/runs/{run}/stop")
            assert answer.status_code in (200, 202, 204), answer.text
            events = await server.events(run)
            assert events[-1].data["status"] == "cancelled"
            assert [event.type for event in events].count("tool_result") == 1


async def test_what_was_connected_in_the_page_is_called_there_and_not_by_a_worker(
    servers: Servers,
) -> None:
    servers.model.script(calls("mine__echo", text="hello"), says("Echoed."))
    async with listening(build_server().streamable_http_app()) as port:
        with servers.worker():
            async with servers.server() as server:
                chat = await server.new_chat()
                path, url = f"/api/chats/{chat}/servers", f"http://127.0.0.1:{port}/mcp"
                await server.client.post(path, json={"name": "mine", "url": url})

                async def ready() -> bool:
                    return bool((await server.client.get(path)).json()[0]["state"] == "ready")

                await until(ready)
                run = await server.send(chat, "Say hello")
                key = (await server.wait_for(run, "approval_required")).data["key"]
                allowed = f"/api/runs/{run}/approvals/{key}"
                await server.client.post(allowed, json={"decision": "allow"})
                events = await server.events(run)
                assert events[-1].data["text"] == "Echoed."
                told = [each.data for each in events if each.type == "tool_result"]
                assert [(each["is_error"], each["text"]) for each in told] == [(False, "hello")]
