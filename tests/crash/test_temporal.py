"""Runs over Temporal whose processes are killed, and stopped, one after another."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.durable_run import ANSWER, ran_in
from tests.support.environment import CHECKOUT, environment
from tests.support.temporal import TemporalServer, new_temporal_server
from tests.support.temporal_runs import TemporalPlace
from web.harness.sessions.opening import open_stores
from web.harness.values.events import Event, RunResult, TextDelta, ToolCallDelta

pytestmark = [pytest.mark.anyio, pytest.mark.full]

SECONDS = 60.0


class Child:
    """A `temporal_child`; what it says is read in order."""

    def __init__(self, role: str, place: TemporalPlace, ran: Path, replay: str) -> None:
        told = (role, place.address, str(ran), replay)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.temporal_child", *told],
            cwd=CHECKOUT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    async def says(self, *words: str) -> list[Any]:
        """Waits until it says something that begins so; lets it go on with everything before."""
        async with asyncio.timeout(SECONDS):
            while True:
                line = await asyncio.to_thread(self._process.stdout.readline)  # type: ignore[union-attr]
                assert line, f"It ended before it said {words}."
                said = list(json.loads(line))
                if said[: len(words)] == list(words):
                    return said
                if said[0] == "at":
                    self.go_on()

    async def let_on(self) -> None:
        """Lets it do all that it wants to, until it ends."""
        while line := await asyncio.to_thread(self._process.stdout.readline):  # type: ignore[union-attr]
            # What it was killed in the middle of has no end.
            if line.endswith(b"\n") and json.loads(line)[0] == "at":
                with suppress(BrokenPipeError):
                    self.go_on()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(SECONDS)

    def close(self) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def server() -> Iterator[TemporalServer]:
    server = new_temporal_server()
    yield server
    server.stop()


@pytest.fixture
def place(server: TemporalServer, tmp_path: Path) -> TemporalPlace:
    return TemporalPlace(tmp_path, server)


@contextmanager
def child(role: str, place: TemporalPlace, ran: Path, replay: str = "safe") -> Iterator[Child]:
    started = Child(role, place, ran, replay)
    try:
        yield started
    finally:
        started.close()


async def events_of(place: TemporalPlace, run_id: str) -> list[Event]:
    stores = await open_stores(place.events, now=time.time)
    try:
        return list((await stores.events.read(run_id, 0, 100_000)).events)
    finally:
        await stores.aclose()


async def test_workers_servers_and_web_processes_may_be_killed_in_one_run(
    server: TemporalServer, place: TemporalPlace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    with child("begin", place, ran) as web:
        run_id = (await web.says("begun"))[1]
        with child("worker", place, ran) as worker:
            await worker.says("at", "look left")
            worker.kill()
        with child("worker", place, ran) as worker:
            working = asyncio.ensure_future(worker.let_on())
            await web.says("asked", "save")
            web.kill()
            with child("resume", place, ran) as again:
                await again.says("asked", "save")
                server.kill()
                # It says yes while there is nobody who could tell the worker.
                again.go_on()
                server.start()
                assert (await again.says("result"))[1:] == ["completed", ANSWER]
            worker.kill()
            await working
    names = [name for name, _ in ran_in(ran)]
    assert names.count("save") == 1
    assert {name: names.count(name) for name in ("look-left", "look-right")} in (
        {"look-left": 2, "look-right": 1},
        {"look-left": 2, "look-right": 2},
    )
    events = await events_of(place, run_id)
    assert isinstance(events[-1].body, RunResult)
    assert len({event.number for event in events}) == len(events)


async def test_a_worker_that_wakes_up_after_it_was_given_up_writes_nothing(
    place: TemporalPlace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    with (
        child("begin", place, ran, "idempotent") as web,
        child("worker", place, ran, "idempotent") as first,
    ):
        run_id = (await web.says("begun"))[1]
        await first.says("at", "look left")
        first.send(signal.SIGSTOP)
        with child("worker", place, ran, "idempotent") as second:
            working = asyncio.ensure_future(second.let_on())
            await web.says("asked", "save")
            before = await events_of(place, run_id)
            first.go_on()
            first.send(signal.SIGCONT)
            waking = asyncio.ensure_future(first.let_on())
            web.go_on()
            assert (await web.says("result"))[1:] == ["completed", ANSWER]
            second.kill()
            await working
        first.kill()
        await waking
    keys = {name: {key for each, key in ran_in(ran) if each == name} for name, _ in ran_in(ran)}
    assert all(len(each) == 1 for each in keys.values())
    events = await events_of(place, run_id)
    # Of what ended, the deltas are joined; everything else stays as it was told.
    told = [event for event in before if not isinstance(event.body, TextDelta | ToolCallDelta)]
    assert [event for event in events if event in told] == told
    assert len({event.number for event in events}) == len(events)
