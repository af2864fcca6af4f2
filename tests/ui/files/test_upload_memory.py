"""A large upload goes to the disk and not into the server's memory."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.serving import serving

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process in /proc"),
]

FILE_BYTES = 100_000_000
MOST_MORE_BYTES = 50 * 1024 * 1024


def resident(pid: int, name: str) -> int:
    """Bytes of memory of a process: `VmRSS` now, or `VmHWM` at most since `forget_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", status)
    return int(kilobytes) * 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@pytest.mark.parametrize("start", [b"\0", b"text "])
def test_a_hundred_megabytes_cost_the_server_less_than_fifty(
    tmp_path: Path, start: bytes, record_property: Callable[[str, object], None]
) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(start * (FILE_BYTES // len(start)))
    with (
        serving("--data-dir", str(tmp_path), "--no-open") as server,
        httpx.Client(base_url=server.address, timeout=120) as client,
    ):
        chat = client.post("/api/chats", json={}).json()["id"]
        path, script = f"/chats/{chat}/uploads", {"hx-request": "true"}
        client.post(path, files={"files": ("small.bin", start)}, headers=script)
        pid = server.process.pid
        before = resident(pid, "VmRSS")
        forget_peak(pid)
        with large.open("rb") as file:
            answer = client.post(path, files={"files": ("large.bin", file)}, headers=script)
        more = resident(pid, "VmHWM") - before
    record_property("more_bytes", more)
    assert answer.status_code == 200, answer.text
    (kept,) = (tmp_path / "generated").glob(f"{chat}-*/large.bin")
    with large.open("rb") as file, kept.open("rb") as copy:
        sent, taken = (hashlib.file_digest(each, "sha256").digest() for each in (file, copy))
    assert sent == taken
    assert more < MOST_MORE_BYTES, f"{more / 1e6:.0f} MB more"
