"""A script run as a process of its own: bounded in time and output, and certain to end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from web.harness.tools.marks import MARK
from web.harness.tools.processes import started
from web.harness.tools.strays import no_strays
from web.harness.tools.threads import run_in_thread
from web.harness.tools.watcher import Watcher, watched
from web.harness.tools.words import shown
from web.harness.values.errors import ToolError

MAX_OUTPUT_BYTES = 48 * 1024
"""Of what a script writes; the rest is read and dropped, so that it can go on."""
LAST_WORDS_SECONDS = 0.5
"""How long output is still read after the script ended, where something it left holds it open."""
REAP_SECONDS = 5.0
"""How long the system may take to tell that a killed process is gone."""

_INTERPRETERS: Mapping[str, tuple[str, ...]] = {".py": (sys.executable,), ".sh": ("sh",)}
_PASSED_ON = ("PATH", "HOME", "LANG")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a script ended. `output` is what it wrote to both of its outputs, in order.

    `dropped` counts the bytes beyond the limit. `exit_code` is negative where a signal ended it.
    """

    exit_code: int
    output: str
    dropped: int = 0
    timed_out: bool = False


def interpreter_of(path: str) -> tuple[str, ...]:
    """The command that runs a script of this name. Raises ToolError for one that is not run."""
    command = _INTERPRETERS.get(Path(path).suffix)
    if command is None:
        raise ToolError(f"{shown(path)} cannot be run: the name of a script ends in .py or .sh.")
    return command


async def run_script(
    command: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    seconds: float,
    made_for_it: Sequence[Path] = (),
) -> Finished:
    """Runs a command in a folder and waits until it has ended, for at most `seconds`.

    No shell reads the command. Of `environ` it gets PATH, HOME and LANG, and one variable by which
    all that it starts is known; it has no input. It leads a process group. At its end, at the time
    limit, and when the caller is cancelled, the group is killed, and what has left it as far as
    `strays` finds it. Should this process end meanwhile, however it does, all this is killed too,
    and the folders `made_for_it` are removed. Raises ToolError when it cannot be started.
    """
    script = _Script()
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    timed_out = False
    async with no_strays() as mark, _watched(mark[MARK], made_for_it) as watcher:
        try:
            transport = await started(
                script,
                command,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=passed_on | mark,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"The script could not be started: {error}.") from error
        watcher.tell(str(transport.get_pid()))
        try:
            async with asyncio.timeout(seconds):
                await script.ended.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await _end(script, transport)
    code = transport.get_returncode()
    return Finished(
        -signal.SIGKILL if code is None else code,
        script.output.decode(errors="replace"),
        script.dropped,
        timed_out,
    )


@asynccontextmanager
async def _watched(mark: str, folders: Sequence[Path]) -> AsyncIterator[Watcher]:
    with ExitStack() as stack:
        opening = watched(mark, *map(str, folders))
        try:
            yield await run_in_thread(lambda: stack.enter_context(opening), finish=True)
        except OSError as error:
            raise ToolError(f"The script could not be started: {error}.") from error
        finally:
            await run_in_thread(stack.close, finish=True)


async def _end(script: _Script, transport: asyncio.SubprocessTransport) -> None:
    """Kills whatever is left of the group, and gathers the last of its output."""
    # First of all, and without a wait that could be cut short.
    with suppress(ProcessLookupError):
        os.killpg(transport.get_pid(), signal.SIGKILL)
    try:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(REAP_SECONDS):
                await script.ended.wait()
            with anyio.move_on_after(LAST_WORDS_SECONDS):
                await script.said_all.wait()
    finally:
        transport.close()


class _Script(asyncio.SubprocessProtocol):
    """Gathers what a script writes. The end of the process counts, not that of its output, which a
    process that it left behind may hold open."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.dropped = 0
        self.ended = asyncio.Event()
        self.said_all = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = data[: MAX_OUTPUT_BYTES - len(self.output)]
        self.output += kept
        self.dropped += len(data) - len(kept)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.said_all.set()

    def process_exited(self) -> None:
        self.ended.set()
