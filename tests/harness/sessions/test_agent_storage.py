"""What an agent keeps by itself stays its own: no store imports or mirrors it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stores import SqlPlace, new_place
from web.harness.agent.agent import Agent
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", [pytest.param("memory", marks=pytest.mark.full), "sqlite"])
async def test_the_storage_of_an_agent_is_neither_imported_nor_mirrored(
    kind: str, tmp_path: Path
) -> None:
    place = await new_place(kind, tmp_path)
    store = await place.sessions()
    storage = tmp_path / "agent"

    async def driver(services: ExecutionServices) -> None:
        async with Agent() as agent:
            await agent.run("hello")
            await agent.save_session(storage_dir=storage, session_id="s")

    await HarnessRuntime(store).run(LOCAL_IDENTITY, "s", driver)
    saved = {path.name: path.read_bytes() for path in storage.iterdir()}
    assert saved
    async with await store.acquire(LOCAL_IDENTITY, "s") as lease:
        # The driver left nothing in its services, so nothing is in the session.
        read = await lease.read()
        assert (read.history, read.state, read.conversations) == ((), {}, {})
        await lease.commit(SessionSnapshot(state={"n": 1}))
    assert {path.name: path.read_bytes() for path in storage.iterdir()} == saved
    if isinstance(place, SqlPlace):
        await place.aclose()
