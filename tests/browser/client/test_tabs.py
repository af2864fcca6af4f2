"""One stream for all tabs of a browser."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Error, expect

from tests.browser.client.conftest import Scene
from tests.browser.client.server import Script, running
from tests.support.browser import Complaints, launched

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

NO_LOCKS = "delete Navigator.prototype.locks"
NO_CHANNEL = "delete window.BroadcastChannel; delete Navigator.prototype.locks"


async def eight(scene: Scene) -> list[Page]:
    """Eight tabs, each with a chat of its own."""
    pages = []
    for n in range(8):
        scene.script.chat(f"c{n}")
        pages.append(await scene.open(f"/chats/c{n}"))
        # The leader opens the next stream before it closes the one that it had.
        await scene.script.until(lambda: len(scene.script.open) == 1)
    return pages


async def all_live(scene: Scene, pages: Sequence[Page], word: str) -> None:
    """Gives each page's chat, and the side bar, a new part, and waits until they are shown."""
    script = scene.script
    script.put("chats", f"row-{word}", f"<li @>{word}</li>", slot="chats")
    for page in pages:
        name = page.url.rpartition("/")[2]
        script.put(name, f"{name}-{word}", f"<p @>{word}</p>")
    for page in pages:
        name = page.url.rpartition("/")[2]
        await expect(page.locator(f"#{name}-{word}")).to_have_text(word)
        await expect(page.locator(f"#row-{word}")).to_have_text(word)


async def leader_of(pages: Sequence[Page], scene: Scene) -> Page:
    """The tab whose stream is open."""
    for page in pages:
        held = await page.evaluate(
            """async () => (await navigator.locks.query()).held
              .filter((each) => each.name === "harness-web").map((each) => each.clientId)"""
        )
        mine = await page.evaluate(
            """() => navigator.locks.request(`probe-${Math.random()}`, async (lock) => {
              const {held} = await navigator.locks.query();
              return held.find((each) => each.name === lock.name).clientId;
            })"""
        )
        if mine in held:
            return page
    raise AssertionError("no tab leads")


@pytest.mark.full
async def test_eight_tabs_are_live_on_one_stream_and_requests_do_not_wait(scene: Scene) -> None:
    scene.script.beat = 5  # However slow the machine is, its stream is not taken for silent.
    pages = await eight(scene)
    await all_live(scene, pages, "hello")
    await scene.script.until(lambda: len(scene.script.open) == 1)
    for page in pages:
        began = time.monotonic()
        await page.evaluate("() => fetch('/').then((answer) => answer.text())")
        assert time.monotonic() - began < 5
    # A tab that joins asks once for what it missed.
    assert len(scene.script.asked("/changes")) <= 7


@pytest.mark.full
async def test_when_the_leading_tab_is_closed_the_others_stay_live(scene: Scene) -> None:
    pages = await eight(scene)
    for n in range(3):
        leader = await leader_of(pages, scene)
        pages.remove(leader)
        await leader.close()
        await all_live(scene, pages, f"after{n}")
        await scene.script.until(lambda: len(scene.script.open) == 1)


@pytest.mark.full
async def test_when_the_leading_tab_crashes_the_others_stay_live(scene: Scene) -> None:
    pages = await eight(scene)
    leader = await leader_of(pages, scene)
    pages.remove(leader)
    crashed = asyncio.Event()
    leader.on("crash", lambda _: crashed.set())
    client = await scene.context.new_cdp_session(leader)
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(2):
            await client.send("Page.crash")
    async with asyncio.timeout(10):
        await crashed.wait()
    await all_live(scene, pages, "after")
    await scene.script.until(lambda: len(scene.script.open) == 1)


@pytest.mark.full
async def test_a_leader_that_fell_silent_loses_its_lead_to_a_tab_that_is_seen(
    scene: Scene,
) -> None:
    scene.script.chat("two")
    first = await scene.open("/chats/one")
    second = await scene.open("/chats/two")
    await all_live(scene, [first, second], "before")
    frozen = await leader_of([first, second], scene)
    other = second if frozen is first else first
    client = await scene.context.new_cdp_session(frozen)
    await client.send("Debugger.enable")
    await client.send("Debugger.pause")
    stuck = asyncio.ensure_future(frozen.evaluate("1"))
    await all_live(scene, [other], "after")
    await client.send("Debugger.disable")
    await stuck
    await all_live(scene, [first, second], "thawed")
    await scene.script.until(lambda: len(scene.script.open) == 1)


@pytest.mark.full
async def test_a_leader_in_the_back_forward_cache_starves_nobody_and_comes_back() -> None:
    script = Script()
    async with (
        launched(without=["--disable-back-forward-cache"]) as browser,
        running(script) as address,
    ):
        context = await browser.new_context()
        context.set_default_timeout(10_000)
        complaints = Complaints(context)
        complaints.allow("favicon")  # the plain page that it goes to names no icon
        scene = Scene(script, address, context, complaints)
        pages = []
        for n in range(3):
            script.chat(f"c{n}")
            pages.append(await scene.open(f"/chats/c{n}"))
        leader = await leader_of(pages, scene)
        await leader.evaluate(
            """() => addEventListener("pageshow", (event) => (window.back = event.persisted))"""
        )
        others = [page for page in pages if page is not leader]
        await leader.goto(f"{address}/test.css")
        await all_live(scene, others, "away")
        await script.until(lambda: len(script.open) == 1)
        await leader.go_back(wait_until="commit")
        await leader.wait_for_function("() => window.back === true")
        await all_live(scene, pages, "back")
        await script.until(lambda: len(script.open) == 1)
        assert complaints.unexpected == []


@pytest.mark.full
async def test_without_web_locks_eight_tabs_are_live_on_one_stream(scene: Scene) -> None:
    await scene.context.add_init_script(NO_LOCKS)
    pages = await eight(scene)
    await all_live(scene, pages, "hello")
    await scene.script.until(lambda: len(scene.script.open) == 1)
    for n in range(4):
        # Nobody can see who leads, so close tabs until it was the one that did.
        await pages.pop(0).close()
        await all_live(scene, pages, f"after{n}")
        await scene.script.until(lambda: len(scene.script.open) == 1)
    assert scene.script.most <= 3


@pytest.mark.full
async def test_without_a_broadcast_channel_each_tab_asks_and_holds_no_connection(
    scene: Scene,
) -> None:
    await scene.context.add_init_script(NO_CHANNEL)
    pages = []
    for n in range(8):
        scene.script.chat(f"c{n}")
        pages.append(await scene.open(f"/chats/c{n}", live=False))
    await all_live(scene, pages, "hello")
    assert scene.script.asked("/stream") == []


async def test_a_tab_that_comes_late_misses_nothing(scene: Scene) -> None:
    scene.script.beat = 5  # However slow the machine is, its stream is not taken for silent.
    first = await scene.open("/chats/one")
    slow = scene.script.chat("two")
    assert slow is not None
    second = await scene.context.new_page()
    # What happens between the rendering of its page and the leader's new stream.
    await second.route("**/static/app.js", lambda route: _later(scene, route))
    await second.goto(scene.address + "/chats/two")
    await expect(second.locator("#missed")).to_have_text("missed")
    await all_live(scene, [first, second], "both")
    await scene.script.until(lambda: bool(scene.script.asked("/changes")))
    assert len(scene.script.asked("/changes")) == 1


async def _later(scene: Scene, route: object) -> None:
    scene.script.put("two", "missed", "<p @>missed</p>")
    scene.script.put("one", "one-newer", "<p @>newer</p>")
    await scene.script.until(lambda: len(scene.script.open) == 1)
    await route.continue_()  # type: ignore[attr-defined]
