"""A page that is refreshed, opened twice or left and come back to shows the answer once, whole."""

from __future__ import annotations

import random

import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Stage
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.browser import Complaints, launched
from tests.support.model_server import Valve

pytestmark = pytest.mark.anyio

SIZES = [
    pytest.param(3_000, 5, id="short"),
    pytest.param(20_000, 20, id="long", marks=pytest.mark.full),
]


@pytest.mark.parametrize(("size", "refreshes"), SIZES)
async def test_an_answer_refreshed_at_random_moments_ends_as_the_reference(
    stage: Stage, size: int, refreshes: int
) -> None:
    chance = random.Random(size)
    valve = Valve()
    answer = KnownAnswer(pieces(mix(size), seed=size), valve=valve)
    prompt = f"refresh me {size}"
    stage.model.replies[prompt] = [answer]
    await stage.context.add_init_script(shown.WATCH)
    page = await stage.open(await stage.new_chat())
    await page.get_by_label("Message", exact=True).fill(prompt)
    await page.keyboard.press("Enter")
    # It may not be loaded anew before the message is on its way.
    await expect(page.locator(".mine")).to_have_count(1)
    at = 0
    for count in range(refreshes):
        await valve.passed(at)
        # More comes while the page is loaded; now and then the answer rests instead.
        at = min(len(answer.tokens), at + chance.randint(1, 2 * len(answer.tokens) // refreshes))
        await valve.allow(at)
        if count % 3 == 2:
            await valve.passed(at)
        await shown.is_sound(page)
        await page.reload(wait_until=chance.choice(["commit", "domcontentloaded", "load"]))
        if count % 3 == 2:
            # Nothing more is under way, so all that was sent has to be here.
            await shown.until_words(page, shown.settled(answer.tokens[:at]))
        await shown.words(page)
        await expect(page.locator(".mine")).to_have_count(1)
        await shown.is_tidy(page)
    await valve.open()
    await shown.until_done(page)
    await shown.is_reference(page, answer.text)
    await shown.is_sound(page)
    await shown.is_tidy(page)
    assert await shown.kinds(page) == ["mine", "answer", "foot"]
    assert stage.model.asked(prompt) == 1


async def test_what_the_model_sent_before_a_pause_is_shown_during_the_pause(stage: Stage) -> None:
    valve = Valve()
    text = mix(9_000)
    answer = KnownAnswer([text, "\n\nThe end."], valve=valve)
    chat = await stage.new_chat()
    await stage.send(chat, "burst", answer)
    page = await stage.open(chat)
    await valve.allow(1)
    await shown.until_words(page, shown.words_in(text))
    await valve.open()
    await shown.until_done(page)
    await shown.is_reference(page, answer.text)


@pytest.mark.full
async def test_three_tabs_show_the_same_answer(stage: Stage) -> None:
    valve = Valve()
    answer = KnownAnswer(pieces(mix(3_000), seed=3), valve=valve)
    chat = await stage.new_chat()
    await stage.send(chat, "three tabs", answer)
    pages = []
    for count in (100, 200, 300):
        await valve.allow(count)
        await valve.passed(count)
        pages.append(await stage.open(chat))
    await valve.open()
    for page in pages:
        await shown.until_done(page)
        await shown.is_reference(page, answer.text)
        await shown.is_tidy(page)
        assert await shown.kinds(page) == ["mine", "answer", "foot"]


@pytest.mark.full
@pytest.mark.parametrize(
    "cached",
    [False, True],
    ids=["loaded again", "from the back/forward cache"],
)
async def test_the_back_button_leads_to_the_whole_answer(stage: Stage, cached: bool) -> None:
    valve = Valve()
    answer = KnownAnswer(pieces(mix(3_000), seed=4), valve=valve)
    chat, other = await stage.new_chat(), await stage.new_chat()
    await stage.send(chat, f"back and forth {cached}", answer)
    async with launched(without=["--disable-back-forward-cache"] if cached else ()) as browser:
        context = await browser.new_context()
        context.set_default_timeout(10_000)
        complaints = Complaints(context)
        page = await context.new_page()
        await page.goto(f"{stage.address}/chats/{chat}")
        await page.evaluate(
            "() => addEventListener('pageshow', (e) => (window.back = e.persisted))"
        )
        await valve.allow(100)
        await shown.until_words(page, shown.settled(answer.tokens[:100]))
        await page.goto(f"{stage.address}/chats/{other}")
        await valve.allow(300)
        await valve.passed(300)
        await page.go_back(wait_until="commit")
        if cached:
            await page.wait_for_function("() => window.back === true")
        await shown.until_words(page, shown.settled(answer.tokens[:300]))
        await page.go_forward()
        await valve.open()
        await page.go_back(wait_until="commit")
        await shown.until_done(page)
        await shown.is_reference(page, answer.text)
        await shown.is_tidy(page)
        assert await shown.kinds(page) == ["mine", "answer", "foot"]
        await context.close()
        assert complaints.unexpected == []
