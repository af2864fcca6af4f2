"""A run that is cut off at any write, with each replay policy, and goes on in another process."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.harness.agent.lives import Lives, World, shown_text
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.codec import check_conversation
from web.harness.values.events import RecoveryRequired, RunResult, ToolResult
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio

POLICIES: tuple[ReplayPolicy, ...] = get_args(ReplayPolicy)

STRIDES = [3, pytest.param(1, marks=pytest.mark.full)]
"""Each how manyth write a run is cut at; all of them under `make test-full`."""


async def whole(policy: ReplayPolicy = "manual") -> Lives:
    """The run without any interruption."""
    lives = Lives(World(policy))
    assert await lives.live() is not None
    return lives


def check_end(lives: Lives, result: RunResult | None) -> None:
    assert result is not None
    assert (result.status, result.text, result.iterations) == ("completed", "All done.", 3)
    assert result.usage == Usage(30, 12)
    assert lives.agent is not None
    assert lives.agent.usage == result.usage
    messages = lives.agent.memory.get_messages()
    check_conversation(messages)
    assert [message.id for message in messages] == [f"r-{number}" for number in range(6)]
    assert [each.role for each in messages[1:]] == ["assistant", "tool"] * 2 + ["assistant"]
    written = lives.written
    assert shown_text(written.events) == "First both. Then this. All done."
    assert written.of(RunResult) == [result]
    assert len({each.call_id for each in written.of(ToolResult)}) == 3


async def cut_at(point: int, policy: ReplayPolicy, *, lossy: bool) -> Lives:
    lives = Lives(World(policy))
    assert await lives.live(point) is None
    lives.die(lossy=lossy)
    begun = len(lives.world.began)
    settled = {step.calls[0].use.id for step in lives.written.steps if step.kind == "call_settled"}
    result = await lives.live()
    check_end(lives, result)
    uncertain = {each.call_id for each in lives.written.of(RecoveryRequired)}
    world = lives.world
    if policy == "manual":
        # Never a silent repeat: it began once, or nobody knew and a person said what it gave.
        assert world.times("act", begun=True) <= 1
        assert world.times("act") == 1 or "r-1-0" in uncertain
    else:
        assert world.times("act") >= 1
        assert uncertain <= {"r-3-0"}
    assert {key for name, key in world.began if name == "act"} <= {"r-1-0"}, "the same key"
    assert world.times("look") >= 1
    assert world.times("save", begun=True) <= 1
    assert not settled & {key for _, key in world.began[begun:]}, "finished tools run once"
    return lives


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("stride", STRIDES)
async def test_a_run_cut_at_any_write_ends_as_if_nothing_had_happened(
    policy: ReplayPolicy, lossy: bool, stride: int
) -> None:
    entries = len((await whole(policy)).written.entries)
    assert entries > 25
    for point in range(1, entries, stride):
        try:
            await cut_at(point, policy, lossy=lossy)
        except BaseException as error:
            error.add_note(f"cut at {point} of {entries}")
            raise


@pytest.mark.full
@pytest.mark.parametrize("policy", ["manual", "idempotent"])
@pytest.mark.parametrize("lossy", [False, True])
async def test_a_run_whose_next_process_ends_too_ends_as_if_nothing_had_happened(
    policy: ReplayPolicy, lossy: bool
) -> None:
    entries = len((await whole(policy)).written.entries)
    for point in range(1, entries):
        for more in (1, 2, 3, 5, 8, 13):
            lives = Lives(World(policy))
            assert await lives.live(point) is None
            lives.die(lossy=lossy)
            result = await lives.live(len(lives.written.entries) + more)
            if result is None:
                lives.die(lossy=lossy)
                check_end(lives, await lives.live())
            asked = [each.call_id for each in lives.written.of(RecoveryRequired)]
            assert lives.world.times("save", begun=True) <= 1, (point, more)
            if policy == "manual":
                assert lives.world.times("act", begun=True) <= 1, (point, more)
            else:
                assert "r-1-0" not in asked, (point, more)
