"""Ends a PostgreSQL server of the tests when the process that started it is gone, however it went.

`python -m tests.support.postgres_reaper FOLDER`: reads from stdin until nobody holds the other end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

SECONDS = 10


def main(folder: Path) -> None:
    sys.stdin.read()
    process = int((folder / "postmaster.pid").read_text().split("\n")[0])
    os.kill(process, signal.SIGINT)
    end = time.monotonic() + SECONDS
    while (folder / "postmaster.pid").exists() and time.monotonic() < end:
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # What ends the tests must not end this before it has done its work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(Path(sys.argv[1]))
