"""A real Temporal server for the tests of a process, started at its first use (half a second).

`python -m tests.support.temporal PORT FOLDER` is the process that keeps it: it ends the server when
nobody holds the other end of its input any more, however the tests ended. Without a folder ('') the
server keeps all in memory.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.environment import CHECKOUT, environment

SECONDS = 30

PARTITIONS = ("numTaskqueueReadPartitions", "numTaskqueueWritePartitions")
"""Of a task queue, made for the throughput of large installations: one is quicker here."""

_queues = itertools.count()


@dataclass(slots=True)
class TemporalServer:
    """`address` is HOST:PORT. With a folder it keeps there what it was told."""

    port: int
    folder: str
    keeper: subprocess.Popen[bytes]
    process: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """SIGKILL, as if the machine lost its power."""
        os.kill(self.process, signal.SIGKILL)
        self.keeper.wait(SECONDS)

    def start(self) -> None:
        """Starts it again after a kill, with what it knew and under its address."""
        self.keeper, self.process = _keep(self.port, self.folder)

    def stop(self) -> None:
        assert self.keeper.stdin is not None
        self.keeper.stdin.close()
        self.keeper.wait(SECONDS)


@cache
def temporal_server() -> TemporalServer:
    """Shared by the tests of this process, which take queues of their own. It keeps all in its
    memory, which is twice as quick."""
    return _new(in_memory=True)


def new_temporal_server(*, in_memory: bool = False) -> TemporalServer:
    """A server of one's own, to be killed and started again; in memory, it knows nothing then."""
    return _new(in_memory=in_memory)


def _new(*, in_memory: bool) -> TemporalServer:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    folder = "" if in_memory else tempfile.mkdtemp(prefix="harness-temporal-")
    return TemporalServer(port, folder, *_keep(port, folder))


def new_queue() -> str:
    """A task queue that no other test uses."""
    return f"tests-{os.getpid()}-{next(_queues)}"


def _keep(port: int, folder: str) -> tuple[subprocess.Popen[bytes], int]:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.support.temporal", str(port), folder],
        cwd=CHECKOUT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert keeper.stdout is not None
    told = keeper.stdout.readline().split()
    if not told:
        raise RuntimeError("The Temporal server of the tests did not start.")
    return keeper, int(told[0])


def main(port: str, folder: str) -> None:
    temporal = Path(sys.executable).with_name("temporal")
    options = ["--headless", "--ip", "127.0.0.1", "--port", port, "--log-level", "never"]
    for each in PARTITIONS:
        options += ["--dynamic-config-value", f"matching.{each}=1"]
    if folder:
        options += ["--db-filename", str(Path(folder, "temporal.db"))]
    server = subprocess.Popen(
        [temporal, "server", "start-dev", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert server.stdout is not None
    # It says where it listens once it does.
    while (line := server.stdout.readline()) and b"Server:" not in line:
        pass
    if not line:
        return
    print(server.pid, flush=True)
    threading.Thread(target=server.stdout.read, daemon=True).start()
    unwanted = threading.Event()

    def end_with_input() -> None:
        sys.stdin.read()
        unwanted.set()
        server.kill()

    threading.Thread(target=end_with_input, daemon=True).start()
    server.wait()
    if folder and unwanted.is_set():
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # What ends the tests must not end this before it has done its work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(sys.argv[1], sys.argv[2])
