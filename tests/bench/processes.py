"""Processes that are measured, or needed for it, each on a core that is chosen for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.support.environment import CHECKOUT, environment
from tests.support.serving import PROGRAM

START_SECONDS = 60.0


class Running:
    """A process that has printed its address."""

    def __init__(self, process: subprocess.Popen[str], address: str, start_seconds: float) -> None:
        self.address = address
        self.start_seconds = start_seconds
        """From the command to the address."""
        self._process = psutil.Process(process.pid)

    def cpu_seconds(self) -> float:
        """CPU time of all its threads so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def memory(self) -> int:
        """Bytes of memory that it occupies (resident)."""
        return int(self._process.memory_info().rss)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: on one core and, if `first`, before all other programs there."""

    core: int
    first: bool

    def take(self) -> None:
        """Puts this process there; what it starts later runs as ordinary programs do."""
        os.sched_setaffinity(0, {self.core})
        if self.first:
            policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, policy, os.sched_param(1))


def places(*, first: bool) -> tuple[Place, Place]:
    """One for what is measured, and one for all else; the same on a machine with one core."""
    cores = sorted(os.sched_getaffinity(0))
    return Place(cores[0], first), Place(cores[-1], first)


@contextmanager
def anywhere() -> Iterator[None]:
    """Lets what is started from here use every core of the machine."""
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, here)


@contextmanager
def running(
    *command: str, place: Place, variables: dict[str, str] | None = None
) -> Iterator[Running]:
    """Starts a command that prints its address as the first `http://` word; ends it at the end."""
    began = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env=environment(**(variables or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=place.take,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            address = next((word for word in line.split() if word.startswith("http://")), "")
            if not address:
                raise RuntimeError(f"{' '.join(command)} printed no address")
            yield Running(process, address, time.monotonic() - began)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def module(name: str) -> Sequence[str]:
    """The command of a module of this benchmark."""
    return (sys.executable, "-m", f"tests.bench.{name}")


@contextmanager
def server(place: Place, model_address: str) -> Iterator[Running]:
    """harness-web as a person starts it, with an empty data folder and the model server."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(
            *PROGRAM,
            *("serve", "--port", "0", "--no-open", "--model", "openai:bench"),
            *("--data-dir", str(Path(folder) / "data")),
            place=place,
            variables={"OPENAI_BASE_URL": f"{model_address}/v1", "OPENAI_API_KEY": "bench"},
        ) as process,
    ):
        yield process
