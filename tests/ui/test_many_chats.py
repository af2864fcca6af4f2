"""Very many chats in a store: the side bar has the newest, and more on a click."""

from __future__ import annotations

import re
import time

import pytest

from tests.support.kept import Restarts, many_chats
from web.chats.storage.loading import PAGE_ROWS

pytestmark = pytest.mark.anyio


def rows(page: str) -> list[str]:
    return re.findall(r'<span dir="auto">(chat \d+)</span>', page)


async def shows_the_newest_and_more_on_a_click(stage: Restarts, count: int) -> float:
    async with stage.server() as server:
        await server.client.get("/api/health")
    await many_chats(stage.place, count)
    began = time.monotonic()
    async with stage.server() as server:
        page = (await server.client.get("/")).text
        took = time.monotonic() - began
        newest = [f"chat {number}" for number in reversed(range(count))]
        assert rows(page) == newest[:PAGE_ROWS]
        assert "Show more" in page
        await server.client.post("/more-chats")
        page = (await server.client.get("/")).text
        assert rows(page) == newest[: 2 * PAGE_ROWS]
        oldest = f"{0:016x}"
        assert "chat 0" in (await server.client.get(f"/chats/{oldest}")).text
        listed = (await server.client.get("/api/chats")).json()
        assert [each["title"] for each in listed] == newest
        for _ in range(count // PAGE_ROWS):
            await server.client.post("/more-chats")
        page = (await server.client.get("/")).text
        assert rows(page) == newest
        assert "Show more" not in page
    return took


async def test_the_side_bar_has_the_newest_chats_and_more_on_a_click(stage: Restarts) -> None:
    await shows_the_newest_and_more_on_a_click(stage, 2 * PAGE_ROWS + 50)


@pytest.mark.full
async def test_a_server_with_ten_thousand_chats_shows_its_first_page_within_two_seconds(
    stage: Restarts,
) -> None:
    assert await shows_the_newest_and_more_on_a_click(stage, 10_000) < 2


async def test_the_api_lists_chats_page_by_page_those_in_memory_among_them(
    stage: Restarts,
) -> None:
    async with stage.server() as server:
        await server.client.get("/api/health")
    await many_chats(stage.place, 7)
    await stage.place.run(
        f"UPDATE harness_records SET deleted_at = 1e12 WHERE session_id = '{3:016x}'"
    )
    async with stage.server() as server:
        await server.client.get(f"/chats/{5:016x}")
        await server.client.patch(f"/api/chats/{4:016x}", json={"title": "loaded"})
        new = await server.new_chat(title="new")
        deleted = await server.new_chat(title="deleted")
        await server.client.delete(f"/api/chats/{deleted}")
        whole = (await server.client.get("/api/chats")).json()
        assert [each["title"] for each in whole] == [
            "new", "chat 6", "chat 5", "loaded", "chat 2", "chat 1", "chat 0",
        ]  # fmt: skip
        for limit in (1, 2, 3, 100):
            paged: list[object] = []
            after = ""
            while page := (
                await server.client.get(f"/api/chats?limit={limit}&after={after}")
            ).json():
                assert len(page) <= limit
                paged += page
                after = page[-1]["id"]
            assert paged == whole
        assert whole[0]["id"] == new
        for query, status in (("limit=0", 422), ("limit=x", 422), ("after=nobody", 404)):
            assert (await server.client.get(f"/api/chats?{query}")).status_code == status
