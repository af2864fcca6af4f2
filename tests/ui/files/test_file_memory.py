"""Large downloads, alone and in a zip, do not pass through the server's memory."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.serving import serving
from tests.ui.files.test_upload_memory import MOST_MORE_BYTES, forget_peak, resident

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process in /proc"),
]

FILE_BYTES = 1024 * 1024 * 1024


@pytest.mark.parametrize("what", ["raw/large.bin", "files.zip"])
def test_a_gigabyte_costs_the_server_less_than_fifty_megabytes(
    what: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with (
        serving("--data-dir", str(tmp_path), "--no-open") as server,
        httpx.Client(base_url=server.address, timeout=300) as client,
    ):
        chat = client.post("/api/chats", json={}).json()["id"]
        client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        with (folder / "large.bin").open("wb") as file:
            for number in range(FILE_BYTES // 2**20):
                file.write(number.to_bytes(4, "big") * 2**18)
        client.get(f"/chats/{chat}/raw/large.bin", headers={"range": "bytes=0-9"})
        pid = server.process.pid
        before = resident(pid, "VmRSS")
        forget_peak(pid)
        taken = tmp_path / "taken"
        with client.stream("GET", f"/chats/{chat}/{what}") as answer, taken.open("wb") as file:
            for piece in answer.iter_bytes():
                file.write(piece)
        more = resident(pid, "VmHWM") - before
    record_property("more_bytes", more)
    with (folder / "large.bin").open("rb") as file:
        made = hashlib.file_digest(file, "sha256").digest()
    if what.endswith(".zip"):
        with zipfile.ZipFile(taken) as archive, archive.open("large.bin") as member:
            assert hashlib.file_digest(member, "sha256").digest() == made  # type: ignore[arg-type]
    else:
        with taken.open("rb") as file:
            assert hashlib.file_digest(file, "sha256").digest() == made
    taken.unlink()
    (folder / "large.bin").unlink()
    assert more < MOST_MORE_BYTES, f"{more / 1e6:.0f} MB more"


def test_a_table_of_a_hundred_thousand_rows_is_quick(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with (
        serving("--data-dir", str(tmp_path), "--no-open") as server,
        httpx.Client(base_url=server.address, timeout=60) as client,
    ):
        chat = client.post("/api/chats", json={}).json()["id"]
        client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        lines = (f'{n},name {n},"a note, {n}",{n * 3.5}\n' for n in range(100_000))
        (folder / "table.csv").write_text("id,name,note,amount\n" + "".join(lines))
        for number, last in (("1", 199), ("500", 99_999), ("250", 49_999), ("9999", 99_999)):
            answer = client.get(f"/chats/{chat}/files/table.csv?page={number}")
            assert f'<td dir="auto">name {last}</td>' in answer.text
            record_property(f"page_{number}_seconds", answer.elapsed.total_seconds())
            assert answer.elapsed.total_seconds() < 2
