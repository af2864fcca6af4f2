"""`harness-web demo crash`, whole: a server is killed, and its answer goes on."""

from __future__ import annotations

import os
import pty
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.environment import environment
from tests.support.postgres import empty_database, give_back

pytestmark = pytest.mark.anyio

SECONDS = 60


class Demo:
    """The program as it runs, and what it tells."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._told = b""

    def line_with(self, words: str) -> str:
        """The next line that has these words. What is read is not more than what comes: whoever
        waits for the pipe would not see what a buffer holds."""
        assert self.process.stdout is not None
        passed = ""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                line, end, rest = self._told.partition(b"\n")
                if end:
                    self._told = rest
                    if words in line.decode():
                        return line.decode()
                    passed += f"{line.decode()}\n"
                elif not selector.select(SECONDS) or not self._read():
                    raise AssertionError(f"nothing says {words!r} but: {passed}")

    def _read(self) -> bool:
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 65_536)
        self._told += data
        return bool(data)

    def ended(self) -> tuple[int, str, str]:
        """Its status, and what it still told, once it has ended."""
        told, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, (self._told + told).decode(), errors.decode()


@contextmanager
def demo(
    folder: Path,
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Demo]:
    """The program in a folder that is no checkout; ended, and its server too, with the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "web", "demo", "crash", *arguments],
        cwd=folder,
        env=environment(**(variables or {})),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            yield Demo(process)
        finally:
            # Its server sees that by the end of its input.
            process.kill()


def shown(folder: Path, *arguments: str, store: str = "") -> str:
    """What a demo told that held, and ended by itself."""
    given = ("--fast", *arguments, *(("--store", store) if store else ()))
    with demo(folder, *given, variables={"HARNESS_WEB_IDENTITY": "header:Nobody"}) as show:
        status, told, errors = show.ended()
        assert (status, errors) == (0, ""), told
    assert told.endswith("It held.\n")
    for pid in servers(told):
        assert not psutil.pid_exists(pid)
    return told


def servers(told: str) -> list[int]:
    found = re.findall(r"(?:Server|Started) +process (\d+)", told)
    return [int(pid) for pid in found]


def count(told: str, tool: str) -> str:
    match = re.search(rf"{tool} began (\w+)", told)
    assert match is not None, told
    return match[1]


@pytest.mark.full
async def test_an_answer_goes_on_after_its_server_was_killed_while_tools_ran(
    tmp_path: Path,
) -> None:
    told = shown(tmp_path, "--kill", "tools")
    assert len(servers(told)) == 2
    assert re.search(r"Kept .* the result of look_up_tide", told)
    assert re.search(r"Undecided +post_letter", told)
    assert "Nobody is here to ask" in told
    assert re.search(r"Resumed +measure_basin", told)
    assert "Resumed     post_letter" not in told
    counts = [count(told, tool) for tool in ("look_up_tide", "measure_basin", "post_letter")]
    assert counts == ["once", "twice", "once"]
    assert os.listdir(tmp_path) == []


@pytest.mark.full
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_an_answer_goes_on_after_its_servers_were_killed_twice(
    tmp_path: Path, kind: str
) -> None:
    postgresql = kind == "postgresql"
    store = await empty_database() if postgresql else f"sqlite:///{tmp_path / 'runs.db'}"
    told = shown(tmp_path, store=store)
    assert len(servers(told)) == 3
    assert re.search(r"Taken back +\d+ words", told)
    assert re.search(r"words, [1-9]\d* more were shown and taken back", told)
    assert f"Kept in     {'PostgreSQL' if postgresql else 'SQLite'}, it is kept there" in told
    if postgresql:
        await give_back(store)


@pytest.mark.full
async def test_a_server_may_be_killed_wherever_one_likes(tmp_path: Path) -> None:
    left, pid, told = ["Started", "Undecided", "Resumed", "Decided", "Writes"], 0, ""
    with demo(tmp_path, "--fast") as show:
        while not told.endswith("It held.\n"):
            line = show.line_with("")
            told += f"{line}\n"
            label = line.split()[0] if line else ""
            if label in ("Server", "Started"):
                pid = servers(line)[0]
            # The first text is for the demo's own first kill.
            if label in left and "Report of" not in line:
                left.remove(label)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert show.ended() == (0, "", "")
    assert left == []
    assert count(told, "post_letter") == "once"


@pytest.mark.full
async def test_what_is_undecided_runs_again_where_that_is_the_answer(tmp_path: Path) -> None:
    told = shown(tmp_path, "--kill", "tools", "--answer", "again")
    assert "it runs once more" in told
    assert "Ended       post_letter: posted to the harbour office" in told
    assert count(told, "post_letter") == "twice"


@pytest.mark.full
async def test_an_answer_that_is_given_up_ends_with_what_it_has(tmp_path: Path) -> None:
    told = shown(tmp_path, "--kill", "tools", "--answer", "give-up")
    assert "the answer is given up" in told
    assert count(told, "post_letter") == "once"
    assert "What came of it" not in told


@pytest.mark.full
async def test_a_person_at_a_terminal_decides(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with demo(tmp_path, "--fast", "--kill", "tools", stdin=theirs) as show:
            show.line_with("3  give up")
            os.write(ours, b"what?\n")
            show.line_with("Type 1, 2 or 3.")
            os.write(ours, b"1\n")
            show.line_with("it ran, and that is its result")
            status, told, errors = show.ended()
            assert (status, errors) == (0, ""), told
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.full
async def test_the_page_decides_and_kills_as_often_as_one_likes(tmp_path: Path, page: Page) -> None:
    """With a terminal that nobody types at, so that the page is the one who answers."""
    ours, theirs = pty.openpty()
    try:
        with demo(tmp_path, "--fast", "--stay", "--kill", "tools", stdin=theirs) as show:
            address = show.line_with("Page").split()[-1]
            await page.goto(address)
            show.line_with("3  give up")
            await page.get_by_text("It ran…").click()
            await page.get_by_role("button", name="It ran, go on with this").click()
            show.line_with("It held.")
            await expect(page.get_by_text("there is one of it.")).to_be_visible()
            for answers in (1, 2):
                await page.get_by_role("textbox", name="Message").fill("Write 150 words")
                await page.keyboard.press("Enter")
                await expect(page.get_by_text("Section 1")).to_have_count(answers)
                await page.get_by_role("button", name="Kill the server").click()
                show.line_with("Killed      from the page")
                show.line_with("Started")
                await expect(page.locator(".status")).to_have_text("Done", timeout=20_000)
                await expect(page.get_by_text("Section 1")).to_have_count(answers)
            show.process.send_signal(signal.SIGINT)
            assert show.ended()[0] == 0
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.full
async def test_a_page_without_script_comes_back_after_the_kill(
    tmp_path: Path, chromium: Browser
) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    with demo(tmp_path, "--fast", "--stay", "--kill", "tools") as show:
        address = show.line_with("Page").split()[-1]
        show.line_with("It held.")
        await page.goto(address)
        await page.get_by_role("button", name="Kill the server").click()
        await expect(page.get_by_role("heading", name="The server was killed")).to_be_visible()
        show.line_with("Started")
        await expect(page.get_by_text("there is one of it.")).to_be_visible(timeout=20_000)
        assert page.url == address
    await context.close()


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_a_demo_that_is_ended_leaves_no_server_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    with demo(tmp_path, "--fast") as show:
        server = psutil.Process(int(show.line_with("Server").split()[-1]))
        show.line_with("Runs")
        show.process.send_signal(number)
        status = -number if number == signal.SIGKILL else 130
        assert show.process.wait(timeout=SECONDS) == status
        _, alive = psutil.wait_procs([server], timeout=10)
        assert alive == []


@pytest.mark.full
async def test_a_port_that_is_taken_ends_the_demo_with_words(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with demo(tmp_path, "--port", str(port)) as second:
            status, _, errors = second.ended()
            assert status == 1
            assert f"Port {port} is taken" in errors
            assert "did not start" in errors


def test_a_store_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    with demo(tmp_path, "--store", "memory") as show:
        status, told, errors = show.ended()
    assert (status, told) == (2, "")
    assert errors.startswith("harness-web: --store: the demo needs a store that outlives")
    assert errors.count("\n") == 1
