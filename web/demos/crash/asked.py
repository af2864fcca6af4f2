"""What the demo asks of its server: one line of JSON on its input, whose end is its own end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from web.demos.crash.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Asked:
    """How a server is to be. Its pages have the same `token` as those of the server before it: one
    that was open all the time can kill it again."""

    store: str
    port: int
    folder: str
    token: str
    fast: bool = False

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def ledger(self) -> Ledger:
        return Ledger(Path(self.folder, "began"))


def read_asked() -> Asked:
    """What is asked of this process, which ends when nobody holds the other end any more."""
    asked = Asked(**json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_input, daemon=True).start()
    return asked


def _end_with_input() -> None:
    # Read from the system: a reader of Python's would hold a lock that is needed at the end.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
