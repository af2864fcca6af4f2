"""A real server process, started as a person starts it."""

from __future__ import annotations

import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.support.environment import CHECKOUT, environment

PROGRAM = (sys.executable, "-m", "web")


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that listens: its address without a slash at the end, and the line it printed."""

    process: subprocess.Popen[str]
    greeting: str
    address: str
    errors: IO[str]

    def stderr(self) -> str:
        """What it has written to its standard error until now."""
        self.errors.seek(0)
        return self.errors.read()


@contextmanager
def serving(
    *arguments: str,
    program: Sequence[str] = PROGRAM,
    folder: Path = CHECKOUT,
    variables: Mapping[str, str] | None = None,
    seconds: float = 30.0,
) -> Iterator[Serving]:
    """Runs `harness-web serve --port 0 ARGUMENTS` in `folder` until the block ends.

    Fails if the server does not print its address within `seconds`.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [*program, "serve", "--port", "0", *arguments],
            cwd=folder,
            env=environment(**(variables or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            greeting = _first_line(process, seconds)
            server = Serving(process, greeting, _address(greeting), errors)
            assert server.address, f"no address in {greeting!r}; it said {server.stderr()!r}"
            yield server
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def _first_line(process: subprocess.Popen[str], seconds: float) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(seconds) else ""


def _address(greeting: str) -> str:
    return next((word for word in greeting.split() if word.startswith("http://")), "")
