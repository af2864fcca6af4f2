"""What a chat has used is counted from what its runs report."""

from __future__ import annotations

import pytest

from tests.support.chat_room import chat_room, log_of
from tests.support.scripted_provider import ScriptedProvider, breaks, calls, says
from web.chats.parts.setup_kinds import Spent
from web.chats.transcript.spending import SPENT, Spending
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.values.events import NestedEvent, RunResult, UsageReport
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio


def report(tokens: int, cost: float | None = None) -> UsageReport:
    return UsageReport("m", Usage(tokens, 1), "demo:demo", cost)


def test_usage_of_sub_agents_counts_too_and_a_result_counts_a_turn() -> None:
    spending = Spending()
    assert spending.take([report(10), NestedEvent("c", report(5, 0.5))])
    assert spending.take([RunResult("completed", "", Usage(15, 2))])
    assert not spending.take([])
    assert (spending.turns, spending.totals.usage, spending.totals.cost) == (1, Usage(15, 2), 0.5)
    back = Spending.from_json(spending.as_json())
    assert back.as_json() == spending.as_json()


async def test_a_chat_shows_what_it_has_used_and_its_session_keeps_it() -> None:
    provider = ScriptedProvider(calls(("nothing", {})), says("ok"), breaks(transient=False))
    async with chat_room(provider) as room:
        chat = await room.new_chat()
        for _ in range(2):
            await room.result((await room.say(chat)).run_id)
        await room.rest()
        assert log_of(chat, "spent") == [Spent(2, Usage(20, 6), None)]
        async with await room.sessions.acquire(LOCAL_IDENTITY, chat.id) as lease:
            state = (await lease.read()).state
        assert state[SPENT]["usage"]["input_tokens"] == 20
