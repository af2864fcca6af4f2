"""A session can be looked at while somebody else holds it."""

from __future__ import annotations

import pytest

from tests.support.steps import ANN, message
from tests.support.stores import SqlPlace
from web.harness.sessions.snapshot import SessionSnapshot

pytestmark = pytest.mark.anyio


async def test_what_is_committed_is_seen_without_the_lease_and_from_another_server(
    place: SqlPlace,
) -> None:
    here, there = await place.sessions(), await place.sessions()
    async with await here.acquire(ANN, "s") as lease:
        assert await there.peek(ANN, "s") == SessionSnapshot()
        for text in ("a", "b"):
            kept = await lease.commit(SessionSnapshot((message("u", text),), state={"n": [1]}))
            for store in (here, there, there):
                seen = await store.peek(ANN, "s")
                assert seen == kept
                # Whoever looks has a copy.
                seen.state["n"].append(2)
        assert await lease.read() == kept
