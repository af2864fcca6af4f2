"""The pages of files that are very large, gone behind a link, never at rest, or oddly written
down."""

# Nobody else waits in these event loops.

from __future__ import annotations

import html
import itertools
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.app_server import AppServer, app_server

pytestmark = pytest.mark.anyio

PAGE = {"accept": "text/html"}


@asynccontextmanager
async def a_chat(tmp_path: Path) -> AsyncIterator[tuple[AppServer, str, Path]]:
    """A server, a chat with `seed.txt` in it, and the folder of its files."""
    async with app_server(tmp_path) as server:
        chat = await server.new_chat()
        file = ("seed.txt", b"one", "text/plain")
        answer = await server.client.post(f"/chats/{chat}/uploads", files={"files": file})
        assert answer.status_code < 400, answer.text
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        yield server, chat, folder


async def page(server: AppServer, address: str, status: int = 200) -> str:
    answer = await server.client.get(address, headers=PAGE)
    assert answer.status_code == status, answer.headers.get("location", answer.text)
    return html.unescape(answer.text)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize("size", [100_000_001, 40 << 30])
async def test_a_file_too_large_to_keep_has_a_page_that_says_so(tmp_path: Path, size: int) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        # One that was deleted before, and one that was never there.
        (folder / "seed.txt").unlink()
        await page(server, f"/chats/{chat}/files/seed.txt")
        for name in ("seed.txt", "out.bin"):
            with (folder / name).open("wb") as file:
                file.truncate(size)
        began = time.monotonic()
        for name in ("seed.txt", "out.bin"):
            text = await page(server, f"/chats/{chat}/files/{name}")
            assert "too large to be kept as a version" in text
            assert f'href="/chats/{chat}/raw/{name}" download' in text
            assert "changed outside" in text
            assert "This file was deleted" not in text
        assert "Version 1, " in await page(server, f"/chats/{chat}/files/seed.txt?version=1")
        listed = (await server.client.get(f"/api/chats/{chat}/files")).json()
        assert [each["size"] for each in listed] == [size, size]
        answer = await server.client.head(f"/chats/{chat}/raw/out.bin")
        assert (answer.status_code, answer.headers["content-length"]) == (200, str(size))
        assert time.monotonic() - began < 8


async def test_an_address_never_leads_to_itself(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        other = f"{folder.name}/seed.txt"
        answer = await server.client.get(f"/chats/{chat}/files/{other}", headers=PAGE)
        assert answer.headers["location"] == f"/chats/{chat}/files/seed.txt"
        for kind in ("files", "raw"):
            answer = await server.client.get(f"/chats/{chat}/{kind}/none.txt", headers=PAGE)
            assert answer.status_code == 404


async def test_what_became_a_link_or_a_folder_shows_its_versions(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        for make in (link, Path.mkdir):
            (folder / "seed.txt").unlink()
            make(folder / "seed.txt")
            text = await page(server, f"/chats/{chat}/files/seed.txt")
            assert "This file was deleted" in text
            assert "Bring back" in text
            assert "root:" not in text
            assert "one" in await page(server, f"/chats/{chat}/files/seed.txt?version=1")
            form = {"path": "seed.txt", "version": "1", "from": "page"}
            answer = await server.client.post(
                f"/chats/{chat}/restore-file", data=form, headers=PAGE
            )
            assert "only plain files can be used" in answer.text
            (folder / "seed.txt").rename(tmp_path / make.__name__)
            await server.client.post(f"/chats/{chat}/restore-file", data=form, headers=PAGE)
            assert (folder / "seed.txt").read_text() == "one"
        # What never was a file is none.
        (folder / "link").symlink_to("/etc/passwd")
        assert "is a link" in await page(server, f"/chats/{chat}/files/link", 422)


async def test_a_file_opens_while_another_program_writes_it(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        begun, stop = threading.Event(), threading.Event()

        def write() -> None:
            with (folder / "log.txt").open("w+b", buffering=0) as file:
                file.write(bytes(4_000_000))
                for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
                    os.pwrite(file.fileno(), b"%10d" % number, 0)
                    begun.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(20)
        try:
            said = [await page(server, f"/chats/{chat}/files/log.txt") for _ in range(2)]
        finally:
            stop.set()
            writer.join()
        # Whether it comes to rest for a moment is chance.
        for text in said:
            kept = "<h2>Versions</h2>" in text
            assert kept or "being changed by another program" in text
        assert "being changed" not in await page(server, f"/chats/{chat}/files/log.txt")


async def test_odd_lines_and_odd_times_break_no_page(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        log = folder / ".harness" / "versions.jsonl"
        plan = json.loads(log.read_text().splitlines()[-2])
        odd_ones: list[dict[str, object]] = [
            {"at": 1e999},
            {"media_type": "a\r\nb: c"},
            {"size": -5},
        ]
        for number, odd in enumerate(odd_ones):
            plan["plan"] |= {"number": 2 + number, **odd}
            with log.open("a") as file:
                file.write(json.dumps(plan) + "\n")
        (folder / "late.txt").write_text("x")
        os.utime(folder / "late.txt", ns=(0, 2**62))
        for address in ("", "/files", "/files/seed.txt", "/files/late.txt", "/files.zip?record=1"):
            answer = await server.client.get(f"/chats/{chat}{address}", headers=PAGE)
            assert answer.status_code == 200, address
