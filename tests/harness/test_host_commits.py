"""A driver says whether the session is committed, and what is committed along with it."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.stores import session_of
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionLease
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

MESSAGE = Message("m", "user", (TextBlock("hello"),))


@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_that_goes_on_later_leaves_the_session_as_it_was(fails: bool) -> None:
    runtime = HarnessRuntime(InMemorySessionStore())

    async def driver(services: ExecutionServices) -> None:
        services.commits = False
        services.history.append(MESSAGE)
        if fails:
            raise asyncio.CancelledError

    if fails:
        with pytest.raises(asyncio.CancelledError):
            await runtime.run(LOCAL_IDENTITY, "s", driver)
    else:
        await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert await session_of(runtime.sessions) == SessionSnapshot()


async def test_something_else_is_committed_along_also_where_the_state_is_no_json() -> None:
    runtime = HarnessRuntime(InMemorySessionStore())
    committed: list[SessionSnapshot] = []

    async def commit(lease: SessionLease, snapshot: SessionSnapshot) -> SessionSnapshot:
        kept = await lease.commit(snapshot)
        committed.append(kept)
        return kept

    async def driver(services: ExecutionServices) -> None:
        services.commit = commit
        services.history.append(MESSAGE)
        services.state["thing"] = object()

    with pytest.raises(NotSerialisable):
        await runtime.run(LOCAL_IDENTITY, "s", driver)
    assert committed == [SessionSnapshot((MESSAGE,), revision=1, replayable=False)]
    assert await session_of(runtime.sessions) == committed[0]
