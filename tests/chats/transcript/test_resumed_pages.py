"""The page of a run whose process ended anywhere is, in the end, that of one that was never cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.agent.lives import Lives, World
from tests.harness.agent.test_resumed_runs import delegates, delegating
from tests.harness.agent.test_resuming import STRIDES
from tests.support.transcript_page import Page
from web.chats.parts.kinds import Answer, Call
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.events import EventBody, RunResult

pytestmark = pytest.mark.anyio


def shown(page: Page, slot: str = "log") -> list[Any]:
    """The answers with their text, and the calls with what became of them, in their order."""
    found: list[Any] = []
    for part in page.channel.slot(slot):
        match part.data:
            case Answer():
                found.append((_plain(part.id), page.text(part.id)))
            case Call(call_id=call_id, status=status, recovery=None):
                found.append((_plain(call_id), status, shown(page, part.id)))
            case Call():
                found.append("an open question")
    return found


def _plain(id: str) -> str:
    """The id without how often the run had begun anew, which those of a sub-agent have."""
    return re.sub(r"-r\d+-", "-", id)


def read(bodies: list[EventBody], *, cut: int | None = None) -> Page:
    """The page of these events. `cut` is after how many of them the server was stopped."""
    page = Page()
    page.happens(*bodies[:cut])
    if cut is not None:
        page.transcript.halt("r", "stopped")
        page.happens(*bodies[cut:])
    return page


async def cut_anywhere(make: Callable[[], Lives], stride: int) -> None:
    whole = make()
    await whole.live()
    expected = shown(read(whole.written.events))
    assert expected
    for point in range(1, len(whole.written.entries), stride):
        lives = make()
        assert await lives.live(point) is None
        before = len(lives.written.events)
        result = await lives.live()
        assert isinstance(result, RunResult), point
        page = read(lives.written.events, cut=before)
        assert shown(page) == expected, point
        assert page.transcript.status.state == "idle", point


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("policy", ["safe", "manual"])
async def test_nothing_is_doubled_lost_or_left_open(policy: ReplayPolicy, stride: int) -> None:
    await cut_anywhere(lambda: Lives(World(policy)), stride)


@pytest.mark.parametrize("stride", STRIDES)
async def test_what_a_sub_agent_did_and_asked_is_there_once(stride: int) -> None:
    def make() -> Lives:
        world = World()
        return Lives(world, script=delegating, tools=delegates("safe", world))

    await cut_anywhere(make, stride)
