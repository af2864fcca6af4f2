"""Eight tabs of one browser, on plain HTTP/1.1, are all live and leave room for requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Error

from tests.browser.stream import shown
from tests.browser.stream.conftest import Stage
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.browser import Complaints, launched
from tests.support.model_server import Valve

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

TABS = 8

_HEALTH_MS = """async () => {
  const began = performance.now();
  const answer = await fetch("/api/health");
  await answer.json();
  return performance.now() - began;
}"""

_LEADS = """async () => {
  const {held} = await navigator.locks.query();
  return new Promise((done) => navigator.locks.request(String(Math.random()), async (mine) => {
    const now = await navigator.locks.query();
    const me = now.held.find((each) => each.name === mine.name).clientId;
    done(held.some((each) => each.clientId === me));
  }));
}"""


class Eight:
    """One chat in eight tabs, and an answer that a valve holds back."""

    def __init__(self, stage: Stage, prompt: str) -> None:
        self.stage = stage
        self.prompt = prompt
        self.valve = Valve()
        self.answer = KnownAnswer(pieces(mix(2_500), seed=8), valve=self.valve)
        self.pages: list[Page] = []
        self.chat = ""

    async def open(self, tabs: int = TABS) -> None:
        self.chat = await self.stage.new_chat()
        await self.stage.send(self.chat, self.prompt, self.answer)
        self.pages = [await self.stage.open(self.chat) for _ in range(tabs)]
        await self.go_on(60)

    async def go_on(self, tokens: int, pages: Sequence[Page] | None = None) -> None:
        """Lets the model go on up to so many tokens; every tab shows them."""
        await self.valve.allow(tokens)
        count = shown.settled(self.answer.tokens[:tokens])
        await asyncio.gather(*(shown.until_words(page, count) for page in pages or self.pages))

    async def finish(self) -> None:
        """Every tab ends with the whole answer, and a request is not kept waiting."""
        await self.valve.open()
        for page in self.pages:
            await shown.until_done(page)
            await shown.is_reference(page, self.answer.text)
            await shown.is_tidy(page)
            assert await shown.kinds(page) == ["mine", "answer", "foot"]
        assert await self.pages[-1].evaluate(_HEALTH_MS) < 5_000

    async def leader(self) -> Page:
        for page in self.pages:
            if await page.evaluate(_LEADS):
                return page
        raise AssertionError("no tab leads")


@pytest.mark.full
async def test_eight_tabs_are_live_and_an_ordinary_request_does_not_wait(stage: Stage) -> None:
    eight = Eight(stage, "eight tabs")
    await eight.open()
    for page in eight.pages:
        assert await page.evaluate(_HEALTH_MS) < 5_000
    leader = await eight.leader()
    eight.pages.remove(leader)
    await leader.close()
    await eight.go_on(150)
    await eight.finish()


@pytest.mark.full
async def test_eight_tabs_are_live_without_web_locks(stage: Stage) -> None:
    await stage.context.add_init_script("delete Navigator.prototype.locks")
    eight = Eight(stage, "eight tabs without locks")
    await eight.open()
    for _ in range(3):
        await eight.pages.pop(0).close()
    await eight.go_on(150)
    await eight.finish()


@pytest.mark.full
async def test_the_tabs_outlive_a_crash_of_the_leading_one(stage: Stage) -> None:
    eight = Eight(stage, "eight tabs and a crash")
    await eight.open()
    leader = await eight.leader()
    eight.pages.remove(leader)
    crashed = asyncio.Event()
    leader.on("crash", lambda _: crashed.set())
    client = await stage.context.new_cdp_session(leader)
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(2):
            await client.send("Page.crash")
    async with asyncio.timeout(10):
        await crashed.wait()
    await eight.go_on(150)
    await eight.finish()


@pytest.mark.full
async def test_a_leader_in_the_back_forward_cache_starves_nobody_and_comes_back(
    stage: Stage,
) -> None:
    async with _with_cache(stage) as stage:
        eight = Eight(stage, "eight tabs and the cache")
        await eight.open()
        leader = await eight.leader()
        await leader.evaluate(
            "() => addEventListener('pageshow', (e) => (window.back = e.persisted))"
        )
        await leader.goto(f"{stage.address}/static/app.css")
        others = [page for page in eight.pages if page is not leader]
        await eight.go_on(150, others)
        for page in others:
            assert await page.evaluate(_HEALTH_MS) < 5_000
        await leader.go_back(wait_until="commit")
        await leader.wait_for_function("() => window.back === true")
        await eight.go_on(250)
        await eight.finish()


@asynccontextmanager
async def _with_cache(stage: Stage) -> AsyncIterator[Stage]:
    """The same stage before a browser whose back/forward cache is on."""
    async with launched(without=["--disable-back-forward-cache"]) as browser:
        context = await browser.new_context()
        context.set_default_timeout(10_000)
        complaints = Complaints(context)
        complaints.allow("favicon")  # the plain file that it goes to names no icon
        yield replace(stage, context=context, complaints=complaints)
        await context.close()
        assert complaints.unexpected == []
