"""Temporal has not the namespace: the server serves, says so, and answers once there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app_server import app_server
from tests.support.kept import page_of, until
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.temporal_runs import TemporalPlace

pytestmark = [pytest.mark.anyio, pytest.mark.full]


async def test_the_page_says_that_the_namespace_is_missing_until_it_is_made(tmp_path: Path) -> None:
    name = f"of-{tmp_path.name}"
    place = TemporalPlace(tmp_path, namespace=name)
    provider = ScriptedProvider(says("Here."))
    async with app_server(tmp_path, provider, settings={"backend": place.address}) as server:
        chat = await server.new_chat()

        async def told_to_all() -> bool:
            return f"Temporal has no namespace &#39;{name}&#39;" in await page_of(server, chat)

        # Also before anybody has sent anything.
        assert await until(told_to_all, 10)
        run = await server.send(chat, "Are you there?")

        async def waits() -> bool:
            return bool((await server.status(run))["waits_for"] == "namespace")

        assert await until(waits, 10)
        assert "Temporal has not the namespace" in await page_of(server, chat)
        await place.make_namespace()

        async def answered() -> bool:
            return bool((await server.status(run))["state"] == "ended")

        assert await until(answered, 60)
        assert (await server.events(run))[-1].data["text"] == "Here."

        async def all_is_well() -> bool:
            return "has no namespace" not in await page_of(server, chat)

        assert await until(all_is_well, 10)
