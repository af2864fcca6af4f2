"""The answer is complete, in order and once, whatever the network between page and server does."""

from __future__ import annotations

import random

import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Stage
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.cutting_proxy import CuttingProxy
from tests.support.model_server import Valve

pytestmark = pytest.mark.anyio

BROKEN_REQUESTS = "ERR_|Failed to load resource"
"""What a browser writes to the console when a connection breaks."""


@pytest.mark.parametrize(
    ("size", "cuts"),
    [
        pytest.param(1_500, 2, id="short"),
        pytest.param(20_000, 20, id="long", marks=pytest.mark.full),
    ],
)
async def test_a_connection_cut_at_random_bytes_loses_and_doubles_nothing(
    stage: Stage, size: int, cuts: int
) -> None:
    stage.complaints.allow(BROKEN_REQUESTS)
    chance = random.Random(size)
    valve = Valve()
    answer = KnownAnswer(pieces(mix(size), seed=size), valve=valve)
    chat = await stage.new_chat()
    await stage.context.add_init_script(shown.WATCH)
    async with CuttingProxy(stage.address) as proxy:
        page = await stage.open(chat, at=proxy.address)
        proxy.cut_after = lambda: chance.randint(1, 8_000) if proxy.cuts < cuts else None
        await stage.send(chat, f"cut {size}", answer)
        proxy.cut()
        step = max(1, len(answer.tokens) // (2 * cuts))
        for at in range(step, len(answer.tokens), step):
            await valve.allow(at)
            # A page that is cut again and again waits some seconds each time.
            await shown.until_words(page, shown.settled(answer.tokens[:at]), seconds=30)
        await valve.open()
        await shown.until_done(page, seconds=30)
        assert proxy.cuts >= min(cuts, 2)
        await shown.is_reference(page, answer.text)
        await shown.is_sound(page)
        await shown.is_tidy(page)
        assert await shown.kinds(page) == ["mine", "answer", "foot"]


@pytest.mark.full
@pytest.mark.parametrize("way", ["the network is away", "nothing gets through"])
async def test_a_page_that_was_offline_says_so_and_catches_up(stage: Stage, way: str) -> None:
    stage.complaints.allow(BROKEN_REQUESTS)
    valve = Valve()
    answer = KnownAnswer(pieces(mix(6_000), seed=1), valve=valve)
    chat = await stage.new_chat()
    await stage.send(chat, f"offline: {way}", answer)
    await stage.context.add_init_script(shown.WATCH)
    async with CuttingProxy(stage.address) as proxy:
        page = await stage.open(chat, at=proxy.address)
        await valve.allow(100)
        await shown.until_words(page, shown.settled(answer.tokens[:100]))
        if way == "the network is away":
            await stage.context.set_offline(True)
        proxy.hold()
        await valve.open()
        banner = page.locator("[data-banner]")
        # 30 seconds: longer than a page takes a silent stream for alive.
        await expect(banner).to_contain_text("be reached", timeout=40_000)
        await expect(banner).to_be_visible()
        await expect(page.locator(".status")).to_be_hidden()
        if way == "the network is away":
            await stage.context.set_offline(False)
        proxy.release()
        await shown.until_done(page, seconds=15)
        await expect(banner).to_be_hidden()
        await expect(page.locator(".status")).to_be_visible()
        await shown.is_reference(page, answer.text)
        await shown.is_sound(page)
        await shown.is_tidy(page)


@pytest.mark.full
async def test_a_slow_reader_gets_everything(stage: Stage) -> None:
    stage.complaints.allow(BROKEN_REQUESTS)  # the stream, once the proxy is closed
    answer = KnownAnswer(pieces(mix(30_000), seed=2), batch=10)
    chat = await stage.new_chat()
    await stage.context.add_init_script(shown.WATCH)
    async with CuttingProxy(stage.address) as proxy:
        page = await stage.open(chat, at=proxy.address)
        proxy.rate = 20_000
        await stage.send(chat, "slow reader", answer)
        await shown.until_done(page, seconds=60)
        await shown.is_reference(page, answer.text)
        await shown.is_sound(page)
        await shown.is_tidy(page)


@pytest.mark.full
async def test_behind_a_proxy_that_buffers_the_page_asks_and_says_so(stage: Stage) -> None:
    stage.complaints.allow(BROKEN_REQUESTS)
    valve = Valve()
    answer = KnownAnswer(pieces(mix(3_000), seed=5), valve=valve)
    chat = await stage.new_chat()
    await stage.context.add_init_script(shown.WATCH)
    async with CuttingProxy(stage.address) as proxy:
        proxy.buffers = True
        page = await stage.open(chat, at=proxy.address)
        await stage.send(chat, "buffered", answer)
        await expect(page.locator("[data-banner]")).to_contain_text(
            "asks for changes", timeout=15_000
        )
        await valve.allow(100)
        await shown.until_words(page, shown.settled(answer.tokens[:100]))
        await valve.open()
        await shown.until_done(page)
        await shown.is_reference(page, answer.text)
        await shown.is_sound(page)
