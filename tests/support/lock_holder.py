"""Another program that holds the lock of a chat's folder for as long as a test wants.

with lock_held(folder) as holder:
    ...
    holder.send_signal(signal.SIGSTOP)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def lock_held(folder: Path, name: str = ".harness/lock") -> Iterator[subprocess.Popen[str]]:
    """`folder` is that of a chat, unless another `name` of the file is given. The lock goes with
    the process, at the end of the block."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-S", "-E", "-c", _PROGRAM, str(file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()
