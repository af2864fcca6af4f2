"""Work for a page ends when nobody waits for the page any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.ui.files.test_file_pages import a_chat, page
from tests.ui.layouts.test_workshop import SLOW, processes, until

pytestmark = pytest.mark.anyio


async def test_a_preview_that_nobody_waits_for_ends_and_so_does_its_turn(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.md").write_bytes(SLOW[:190_000])
        address = f"/chats/{chat}/files/a.md"
        slow = [asyncio.ensure_future(server.client.get(address)) for _ in range(4)]
        await until(lambda: len(processes()) == 2)
        for each in slow:
            each.cancel()
        # Those that waited do not begin either.
        await until(lambda: not processes(), 3)
        (folder / "b.json").write_bytes(b"[" + b"1," * 20_000 + b"1]")
        # Laying it out has but seconds, which on a busy machine may be too few at first.
        async with asyncio.timeout(60):
            while '<ul class="tree">' not in await page(server, chat, "b.json"):
                pass
        assert not processes()
