"""A commit costs what is new: a turn of a long chat takes as long as one of a short chat."""

from __future__ import annotations

import time
from statistics import median

import pytest

from tests.support.stores import SqlPlace
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionStore
from web.harness.values.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock

pytestmark = pytest.mark.anyio

SHORT = 10
TURNS = 25


@pytest.fixture
async def store(place: SqlPlace) -> SessionStore:
    return await place.sessions()


def turn(at: int) -> tuple[Message, ...]:
    use = ToolUseBlock(f"c{at}", "tool", {"path": "a.txt", "list": [1, 2, 3]})
    return (
        Message(f"u{at}", "user", (TextBlock("What is this?"),)),
        Message(f"a{at}", "assistant", (TextBlock("Let me look."), use), f"u{at}"),
        Message(f"t{at}", "tool", (ToolResultBlock(use.id, (TextBlock("x" * 500),)),), f"a{at}"),
        Message(f"b{at}", "assistant", (TextBlock("That. " * 50),), f"t{at}"),
    )


@pytest.mark.parametrize(
    ("count", "most"),
    [
        # Less of it, and more room for what else the machine does.
        pytest.param(3_000, 3, id="sampled"),
        pytest.param(10_000, 2, id="whole", marks=pytest.mark.full),
    ],
)
async def test_a_turn_of_ten_thousand_messages_commits_in_at_most_twice_the_time_of_ten(
    store: SessionStore, count: int, most: int
) -> None:
    history = {"short": SHORT, "long": count}
    for session_id, size in history.items():
        messages = tuple(each for at in range(size // 4 + 1) for each in turn(at))[:size]
        async with await store.acquire(LOCAL_IDENTITY, session_id) as lease:
            await lease.commit(SessionSnapshot(messages))
    spent: dict[str, list[float]] = {"short": [], "long": []}
    whole: dict[str, list[float]] = {"short": [], "long": []}
    # In turns, so that whatever slows this machine slows both.
    for at in range(TURNS):
        for session_id in spent:
            began = time.perf_counter()
            async with await store.acquire(LOCAL_IDENTITY, session_id) as lease:
                before = await lease.read()
                snapshot = SessionSnapshot((*before.history, *turn(20_000 + at)), state={"n": at})
                commits = time.perf_counter()
                await lease.commit(snapshot)
                spent[session_id].append(time.perf_counter() - commits)
            whole[session_id].append(time.perf_counter() - began)
    print({name: f"{1000 * median(each):.2f} ms" for name, each in spent.items()})
    print({name: f"{1000 * median(each):.2f} ms" for name, each in whole.items()})
    assert median(spent["long"]) <= most * median(spent["short"])
