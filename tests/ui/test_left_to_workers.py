"""Chats whose runs a worker performs, as a program sees them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.app_server import app_server
from tests.support.cutting_proxy import CuttingProxy
from tests.support.kept import shows
from tests.support.killable import rest
from tests.support.scripted_provider import ScriptedProvider
from tests.support.temporal import new_queue, temporal_server
from web.harness.values.config import DEMO_MODEL
from web.harness.values.model import TextChunk
from web.settings import Settings
from web.worker import working

pytestmark = [pytest.mark.anyio, pytest.mark.full]


async def test_a_conversation_is_whole_once_its_result_is_told(tmp_path: Path) -> None:
    """Also before the server hears from Temporal, and commits it."""
    events, queue = f"sqlite:///{tmp_path / 'chats.db'}", new_queue()

    def by(where: str) -> str:
        return f"temporal://{where}/default?events={quote(events, safe='')}&queue={queue}"

    model, worker = (DEMO_MODEL,), by(temporal_server().address)
    async with CuttingProxy(temporal_server().address) as proxy:
        server_settings = {"model": model, "backend": by(proxy.address.removeprefix("http://"))}
        async with (
            working(Settings(data_dir=tmp_path, model=model, backend=worker), worker),
            app_server(tmp_path, settings=server_settings) as server,
        ):
            chat = await server.new_chat()
            run = await server.send(chat, "long 60 at 20 tokens a second")
            await server.wait_for(run, "text_delta")
            # The server hears of the worker by the database alone from now on.
            proxy.hold()
            answer = (await server.events(run))[-1].data["text"]
            assert await rest(server, chat) == ["long 60 at 20 tokens a second", answer]
            told = (await server.chat(chat))["messages"]
            proxy.release()
            await server.events(await server.send(chat, "long 3 fast"))
            await rest(server, chat)
            assert (await server.chat(chat))["messages"][:2] == told


async def test_who_pauses_an_answer_while_temporal_is_away_is_told_at_once(tmp_path: Path) -> None:
    events, queue = f"sqlite:///{tmp_path / 'chats.db'}", new_queue()
    async with CuttingProxy(temporal_server().address) as proxy:
        where = proxy.address.removeprefix("http://")
        backend = f"temporal://{where}/default?events={quote(events, safe='')}&queue={queue}"
        settings = {"model": (DEMO_MODEL,), "backend": backend}
        endless = ScriptedProvider([TextChunk("The first half. "), asyncio.Event()])
        async with app_server(tmp_path, endless, settings=settings) as server:
            chat = await server.new_chat()
            run = await server.send(chat, "Tell me all")
            await server.wait_for(run, "text_delta")
            proxy.hold()
            pausing = asyncio.ensure_future(server.client.post(f"/api/runs/{run}/pause"))
            await shows(server, chat, "Pausing")
            assert not pausing.done()
            proxy.release()
            assert (await pausing).status_code == 202
            await shows(server, chat, "This answer is paused")
