"""What has left its process group, found by what it was given."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress

import pytest

from web.harness.tools.marks import MARK
from web.harness.tools.strays import no_strays

pytestmark = pytest.mark.anyio

SECONDS = 10


def started(code: str, given: dict[str, str]) -> subprocess.Popen[bytes]:
    """A shell that leads its own session, once it has said that it is ready."""
    process = subprocess.Popen(
        ["sh", "-c", code],
        env={"PATH": os.environ["PATH"], **given},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


async def test_only_what_was_given_the_variable_of_the_block_ends_with_it() -> None:
    other = started("echo ready; exec sleep 600", {MARK: "another"})
    try:
        async with no_strays() as mark:
            mine = started("echo ready; exec sleep 600", mark)
            async with no_strays() as inner:
                assert inner != mark
            assert mine.poll() is None
        assert mine.wait(SECONDS) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait(SECONDS)


async def test_whatever_ends_the_block_nothing_is_left() -> None:
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012
        async with no_strays() as mark:
            process = started("echo ready; exec sleep 600", mark)
            raise ValueError("mine")
    assert process.wait(SECONDS) == -9


async def test_they_may_end_by_themselves_where_they_are_asked_and_are_killed_where_not() -> None:
    polite = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    async with no_strays(ask_seconds=SECONDS) as mark:
        asked = started(polite, mark)
    assert asked.wait(SECONDS) == 7
    async with no_strays(ask_seconds=0.1) as mark:
        stubborn = started("trap '' TERM; echo ready; while :; do sleep 0.01; done", mark)
    assert stubborn.wait(SECONDS) == -9


async def test_those_that_start_others_all_the_time_are_all_killed() -> None:
    code = "echo ready; n=0; while [ $n -lt 2000 ]; do setsid sleep 600 & n=$((n+1)); done"
    async with no_strays() as mark:
        process = started(code, mark)
    process.wait(SECONDS)
    assert left(mark[MARK]) == []


def left(mark: str) -> list[str]:
    """The processes that live and have the mark, a while after they were killed."""
    ends = time.monotonic() + SECONDS
    while (found := marked(mark)) and time.monotonic() < ends:
        time.sleep(0.01)
    return found


def marked(mark: str) -> list[str]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
            if f"{MARK}={mark}".encode() in environ.read().split(b"\0"):
                found.append(name)
    return found
