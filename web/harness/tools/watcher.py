"""Ends a program whose server is gone, however that ended; see `watched`.

The watcher is a small process. What it is told comes in lines: the number of the program's process
group, and `done` when there is nothing to end any more. Where the lines end before that, the server
has ended. Only the standard library is used here, so that it starts quickly.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web.harness.tools.marks import kill_marked

_ROOT = str(Path(__file__).parents[3])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1])\nfrom web.harness.tools.watcher import watch\n"
)
_COMMAND = (sys.executable, "-I", "-B", "-S", "-c", f"{_START}watch(*sys.argv[2:])", _ROOT)

END_SECONDS = 5.0


class Watcher:
    """A watcher at work."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def tell(self, line: str) -> None:
        # It may be gone, if somebody has killed it.
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None  # noqa: S101 (for the type checker)
            self._process.stdin.write(f"{line}\n".encode())


@contextmanager
def watched(mark: str, *folders: str) -> Iterator[Watcher]:
    """While a program runs that bears `mark`, see `marks`: should this process end, however it
    does, the program is killed with all that it started, and the folders are removed.

    The watcher is told the number of the program's group once that is known. Blocks; raises OSError
    where it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603 (our own program)
        (*_COMMAND, mark, *folders),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        env={},
        # What is sent to the server's own group, as by Ctrl-C, is not for it.
        start_new_session=True,
    )
    watcher = Watcher(process)
    # What closes at the end has it end, if it was told that all is done.
    with process:
        yield watcher
        watcher.tell("done")


def watch(mark: str, *folders: str) -> None:
    """What the watcher does: waits, and ends what is left."""
    told = sys.stdin.read().split()
    if "done" in told:
        return
    for group in told:
        with suppress(OSError):
            os.killpg(int(group), signal.SIGKILL)
    kill_marked(mark)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
