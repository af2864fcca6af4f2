"""How often a reader of the page gets a frame."""

from __future__ import annotations

from itertools import pairwise

import pytest

from web.ui.stream.pace import BUSY, FASTEST, SLOWEST, Pace, Steps, interval_at


class Clocks:
    """A wall clock and the CPU time of a thread, both moved by hand."""

    def __init__(self) -> None:
        self.wall = 100.0
        self.cpu = 5.0

    def pass_by(self, seconds: float, *, load: float) -> None:
        self.wall += seconds
        self.cpu += seconds * load

    def pace(self) -> Pace:
        return Pace(lambda: self.wall, lambda: self.cpu)


def busy(clocks: Clocks, pace: Pace, seconds: int = 3) -> None:
    for _ in range(4 * seconds):
        clocks.pass_by(0.25, load=0.85)
        pace.interval()


def test_the_interval_follows_the_load() -> None:
    assert interval_at(0.1) == FASTEST
    assert interval_at(0.85) == pytest.approx(BUSY)
    assert interval_at(1.0) == SLOWEST
    steps = [interval_at(load / 100) for load in range(101)]
    assert steps == sorted(steps)


def test_a_server_that_was_busy_and_rested_is_quick_at_once() -> None:
    clocks = Clocks()
    pace = clocks.pace()
    busy(clocks, pace)
    assert pace.interval() > 0.9 * BUSY
    clocks.pass_by(2, load=0)
    assert pace.interval() == FASTEST


def test_the_second_frame_after_a_rest_need_not_wait() -> None:
    clocks = Clocks()
    steps = Steps(clocks.pace())
    assert steps.wait() == 0
    clocks.pass_by(0.004, load=0)
    assert steps.wait() == pytest.approx(FASTEST - 0.004)


def test_further_frames_keep_the_interval_of_the_load() -> None:
    clocks = Clocks()
    pace = clocks.pace()
    busy(clocks, pace)
    steps = Steps(pace)
    given = []
    for _ in range(20):
        given.append(clocks.wall)
        clocks.pass_by(max(0.001, steps.wait()), load=0.85)
    gaps = [later - earlier for earlier, later in pairwise(given)]
    assert gaps[1:] == pytest.approx([BUSY] * 18, rel=0.1)
