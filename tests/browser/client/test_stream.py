"""The stream through trouble: cuts, silence, proxies, errors, restarts."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.client.conftest import Scene

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = pytest.mark.anyio

LOG = "() => document.querySelector('[data-slot=log]').innerText"


@pytest.mark.full
async def test_a_stream_cut_at_random_bytes_loses_and_doubles_nothing(scene: Scene) -> None:
    scene.complaints.allow("ERR_|Failed to load")
    chance = random.Random(7)
    scene.script.cuts = [chance.randint(1, 900) for _ in range(25)]
    page = await scene.open(live=False)
    scene.script.put("one", "a", "<article @ data-slot=a>%</article>")
    words = [f"word{n}" for n in range(60)]
    for n, word in enumerate(words):
        scene.script.put("one", f"w{n // 6}", f"<p @>{' '.join(words[n // 6 * 6 : n + 1])}</p>")
        await page.wait_for_function(
            "(word) => document.querySelector('[data-slot=log]').textContent.includes(word)",
            arg=word,
        )
    assert (await page.evaluate(LOG)).split() == words
    assert len(scene.script.asked("/stream")) > 5


@pytest.mark.full
async def test_a_silent_stream_is_opened_again_and_the_page_says_so(scene: Scene) -> None:
    page = await scene.open()
    scene.script.silent = True
    banner = page.locator("[data-banner]")
    await expect(banner).to_contain_text("Updates every few seconds")
    scene.script.put("one", "a", "<p @>by asking</p>")
    await expect(page.locator("#a")).to_have_text("by asking")
    scene.script.silent = False
    await expect(banner).to_be_hidden()
    scene.script.put("one", "b", "<p @>by the stream</p>")
    await expect(page.locator("#b")).to_have_text("by the stream")


@pytest.mark.full
async def test_behind_a_proxy_that_buffers_the_page_asks_every_little_while(scene: Scene) -> None:
    scene.script.buffered = True
    page = await scene.open()
    await expect(page.locator("[data-banner]")).to_contain_text("every few seconds")
    await expect(page.locator("[data-banner]")).to_be_visible()
    for n in range(3):
        scene.script.put("one", f"a{n}", f"<p @>part {n}</p>")
        await expect(page.locator(f"#a{n}")).to_have_text(f"part {n}")


@pytest.mark.full
async def test_a_refused_stream_is_tried_again_with_growing_pauses(scene: Scene) -> None:
    scene.complaints.allow("503")
    scene.script.refused = True
    page = await scene.open(live=False)
    await scene.script.until(lambda: len(scene.script.asked("/stream")) >= 3)
    scene.script.put("one", "a", "<p @>still here</p>")
    await expect(page.locator("#a")).to_have_text("still here")
    scene.script.refused = False
    await scene.script.until(lambda: bool(scene.script.open))
    await expect(page.locator("[data-banner]")).to_be_hidden()


async def test_without_a_network_the_page_says_so_and_catches_up(scene: Scene) -> None:
    scene.complaints.allow("ERR_INTERNET_DISCONNECTED|Failed to load")
    page = await scene.open()
    await scene.context.set_offline(True)
    scene.script.cut()
    await expect(page.locator("[data-banner]")).to_contain_text("No connection")
    await expect(page.locator("[data-banner]")).to_be_visible()
    scene.script.put("one", "a", "<p @>meanwhile</p>")
    await scene.context.set_offline(False)
    await expect(page.locator("#a")).to_have_text("meanwhile")
    await expect(page.locator("[data-banner]")).to_be_hidden()


@pytest.mark.full
async def test_whoever_was_away_is_not_told_that_the_stream_is_held_back(scene: Scene) -> None:
    scene.complaints.allow("ERR_INTERNET_DISCONNECTED|Failed to load")
    scene.script.beat = 2.0  # A loaded machine has its time.
    page = await scene.open()
    await page.evaluate(
        """() => {
          window.said = [];
          const banner = document.querySelector("[data-banner]");
          new MutationObserver(() => banner.hidden || window.said.push(banner.innerText))
            .observe(banner, {attributes: true, childList: true});
        }"""
    )
    await scene.context.set_offline(True)
    scene.script.cut()
    await expect(page.locator("[data-banner]")).to_contain_text("No connection")
    going = asyncio.Event()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.continue_()

    await page.route("**/stream?*", hold)
    scene.script.put("one", "a", "<p @>meanwhile</p>")
    await scene.context.set_offline(False)
    await expect(page.locator("#a")).to_have_text("meanwhile")
    await expect(page.locator("[data-banner]")).to_be_hidden()
    going.set()
    await scene.script.until(lambda: bool(scene.script.open))
    said = " ".join(await page.evaluate("window.said"))
    assert "No connection" in said
    assert "Updates every few seconds" not in said


async def test_a_chat_that_a_restart_lost_is_gone_and_what_is_on_screen_stays(
    scene: Scene,
) -> None:
    scene.complaints.allow("ERR_|Failed to load")
    scene.script.beat = 5  # However slow the machine is, its stream is not taken for silent.
    scene.script.put("one", "a", "<p @>an answer</p>")
    page = await scene.open()
    await page.fill("[data-composer] textarea", "half a thought")
    scene.script.restart("second")
    scene.script.put("chats", "row", "<li @>a new chat</li>", slot="chats")
    banner = page.locator("[data-banner]")
    await expect(banner).to_contain_text("Chat one is restarted. Its text stays here.")
    await expect(page.locator("#row")).to_have_text("a new chat")
    await expect(page.locator("#a")).to_have_text("an answer")
    assert await page.input_value("[data-composer] textarea") == "half a thought"
    # The chat is not asked for any more, and nothing goes round and round.
    await scene.script.until(lambda: [s.names for s in scene.script.open] == [["chats"]])
    count = len(scene.script.requests)
    scene.script.put("chats", "row2", "<li @>another</li>", slot="chats")
    await expect(page.locator("#row2")).to_have_text("another")
    assert len(scene.script.requests) == count
    await banner.get_by_role("link").click()
    await page.wait_for_url("**/")
    assert await page.input_value("[data-composer] textarea") == "half a thought"


@pytest.mark.full
async def test_a_deleted_chat_says_so(scene: Scene) -> None:
    page = await scene.open()
    scene.script.end("one", "deleted")
    await expect(page.locator("[data-banner]")).to_contain_text("Chat one is deleted.")


async def test_a_chat_that_came_back_with_a_new_epoch_is_shown_as_it_is_now(scene: Scene) -> None:
    scene.complaints.allow("ERR_|Failed to load")
    for n in range(9):
        scene.script.put("one", f"a{n}", f"<p @>before {n}</p>")
    page = await scene.open()
    form = '<form><input type="hidden" name="token" value="token of first"></form>'
    await page.evaluate("(form) => document.body.insertAdjacentHTML('beforeend', form)", form)
    scene.script.remove("one", "a8")
    scene.script.restart("second", keep=("one",))
    scene.script.put("one", "a1", "<p @>after</p>")
    await expect(page.locator("#a1")).to_have_text("after")
    # A form that was there before is one of the new server's by now.
    await expect(page.locator("input[name=token]")).to_have_value("token of second")
    late = {"epoch": "first", "version": 99, "channels": [], "gone": []}
    part = {"id": "a1", "slot": "log", "after": None, "version": 99}
    part["html"] = '<p id="a1" data-part data-version="99">late</p>'
    late["channels"] = [{"name": "one", "full": False, "parts": [part]}]
    scene.script.inject(late)
    scene.script.put("one", "b", "<p @>the end</p>")
    await expect(page.locator("#b")).to_have_text("the end")
    assert (await page.evaluate(LOG)).split("\n\n") == [
        "before 0",
        "after",
        *[f"before {n}" for n in range(2, 8)],
        "the end",
    ]


async def test_changed_from_a_form_fetches_at_once_even_while_the_stream_is_silent(
    scene: Scene,
) -> None:
    scene.script.beat = 5  # However slow the machine is, its stream is not taken for silent.
    page = await scene.open()
    scene.script.silent = True
    scene.script.put("one", "a", "<p @>by the answer</p>")
    await page.evaluate("() => document.body.dispatchEvent(new Event('changed', {bubbles: true}))")
    await expect(page.locator("#a")).to_have_text("by the answer")
    assert len(scene.script.asked("/changes")) == 1
