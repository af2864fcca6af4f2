"""Chats whose runs a worker performs, as a program sees them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.app_server import app_server
from tests.support.cutting_proxy import CuttingProxy
from tests.support.killable import rest
from tests.support.temporal import new_queue, temporal_server
from web.harness.values.config import DEMO_MODEL
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
