"""`harness-web demo-server` as a program: what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.environment import environment

SECONDS = 30
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@contextmanager
def started(folder: Path, stdin: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """The program in a folder that is no checkout; killed if it outlives the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "web", "demo-server"],
        cwd=folder,
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(pipe: IO[str] | None) -> str:
    """The next line; empty if none comes in time."""
    assert pipe is not None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return pipe.readline() if selector.select(SECONDS) else ""


def ask(process: subprocess.Popen[str], method: str, *, times: int = 1, **params: Any) -> None:
    assert process.stdin is not None
    message = {
        "jsonrpc": "2.0",
        "id": method,
        "method": method,
        "params": {**params, "_meta": META},
    }
    process.stdin.write((json.dumps(message) + "\n") * times)
    process.stdin.flush()


def ask_for_a_long_count(process: subprocess.Popen[str]) -> None:
    arguments = {"number": 1000, "pause_seconds": 10}
    ask(process, "tools/call", name="count_to", arguments=arguments)
    # Messages are taken in order: the answer to this one comes while the count is under way.
    ask(process, "server/discover")
    answer = json.loads(line(process.stdout))
    assert "2026-07-28" in answer["result"]["supportedVersions"]
    assert "count_to" in answer["result"]["instructions"]


@pytest.mark.full
def test_closed_stdin_ends_it_quietly_in_the_middle_of_a_call(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        ask_for_a_long_count(process)
        _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, errors) == (0, "")


@pytest.mark.full
def test_a_client_that_is_gone_ends_it_quietly(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        ask_for_a_long_count(process)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        # So many that the first answer finds nobody before the last question is read.
        ask(process, "server/discover", times=50)
        process.stdin.close()
        assert process.wait(timeout=SECONDS) == 0
        assert process.stderr.read() == ""


def test_ctrl_c_ends_it_quietly_in_the_middle_of_a_call(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        ask_for_a_long_count(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SECONDS) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_person_who_starts_it_is_told_what_it_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with started(tmp_path, stdin=theirs) as process:
            hint = line(process.stderr)
            assert "MCP server" in hint
            assert "demo-server --help" in hint
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=SECONDS)
            assert (process.returncode, rest, errors) == (130, "", "")
    finally:
        os.close(ours)
        os.close(theirs)


def test_help_says_how_a_client_is_told_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "web", "demo-server", "--help"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    found = next(text for text in done.stdout.splitlines() if "mcpServers" in text)
    assert json.loads(found)["mcpServers"]["demo"] == {
        "command": "harness-web",
        "args": ["demo-server"],
    }
    # Help comes at once: nothing of the server is loaded for it.
    assert [text for text in done.stderr.splitlines() if text.split()[-1].startswith("mcp")] == []
