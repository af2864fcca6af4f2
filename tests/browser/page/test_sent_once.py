"""However often and fast somebody presses Enter or clicks, and however slow all is: a message goes
once, and nobody is told of an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import Error, expect

from tests.browser.page.stage import BOX, Stage, shows, staged
from tests.support.scripted_provider import says

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Request, Route

pytestmark = pytest.mark.anyio

NOTES = ("notes.md", b"Rain.", "text/markdown")
UNSEEN = ("**/stream?*", "**/changes?*")
"""What a page hears of changes by."""


class Hold:
    """Keeps requests of a page from the server until they may go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.came = asyncio.Event()

    async def __call__(self, route: Route) -> None:
        self.came.set()
        await self.go.wait()
        with suppress(Error):  # The page may have given it up.
            await route.continue_()


@asynccontextmanager
async def held(page: Page, *addresses: str) -> AsyncIterator[Hold]:
    """Requests for these wait until the end, or until the test lets them go."""
    hold = Hold()
    for each in addresses:
        await page.route(each, hold)
    try:
        yield hold
    finally:
        hold.go.set()
        for each in addresses:
            await page.unroute(each, hold)


def sent_by(page: Page) -> list[str]:
    """The texts of the messages that a page sends from now on."""
    texts: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST" and request.url.endswith(("/messages", "/chats")):
            fields: Any = request.post_data_json
            texts.append(fields["text"])

    page.on("request", note)
    return texts


async def insist(page: Page) -> None:
    """All that an impatient person does."""
    for _ in range(2):
        await page.press(BOX, "Enter")
    await page.get_by_role("button", name="Send").dblclick()


async def with_notes(stage: Stage) -> str:
    """A chat with a file that waits for the next message; its address."""
    address = f"/chats/{await stage.server.new_chat()}"
    answer = await stage.server.client.post(
        f"{address}/uploads", files={"files": NOTES}, headers={"HX-Request": "true"}
    )
    assert answer.status_code == 200, answer.text
    return address


@pytest.mark.parametrize(
    "text",
    [pytest.param("Read it", marks=pytest.mark.full), ""],
    ids=["text and file", "file alone"],
)
async def test_what_went_along_is_not_sent_again_while_it_is_still_shown(
    stage: Stage, text: str
) -> None:
    page = await stage.context.new_page()
    async with held(page, *UNSEEN):
        await page.goto(stage.server.address + await with_notes(stage))
        sent = sent_by(page)
        await page.fill(BOX, text)
        async with held(page, "**/messages") as first:
            await page.press(BOX, "Enter")
            await first.came.wait()
            await insist(page)
            async with page.expect_response("**/messages"):
                first.go.set()
        await expect(page.locator(".attachment")).to_be_visible()
        await insist(page)
        await page.fill(BOX, "And now?")
        async with page.expect_response("**/messages"):
            await insist(page)
        await insist(page)
        assert sent == [text, "And now?"]
    one, two = [request.messages[-1] for request in await stage.requests(2)]
    assert [each.name for each in one.attachments] == ["notes.md"]
    assert two.attachments == ()


async def test_a_file_that_was_taken_in_goes_without_a_word_before_it_is_shown(
    stage: Stage,
) -> None:
    page = await stage.context.new_page()
    async with held(page, *UNSEEN):
        await page.goto(f"{stage.server.address}/chats/{await stage.server.new_chat()}")
        sent = sent_by(page)
        async with page.expect_response("**/uploads"):
            await page.set_input_files(
                "[data-attach]",
                {"name": NOTES[0], "mimeType": NOTES[2], "buffer": NOTES[1]},
            )
        await expect(page.locator(".upload[data-taken]")).to_be_visible()
        async with page.expect_response("**/messages"):
            await insist(page)
        await expect(page.locator(".upload")).to_have_count(0)
        await insist(page)
        assert sent == [""]
    (request,) = await stage.requests(1)
    assert [each.name for each in request.messages[-1].attachments] == ["notes.md"]


async def test_a_new_chat_is_made_once_while_the_browser_goes_there(stage: Stage) -> None:
    page = await stage.open()
    sent = sent_by(page)
    await page.fill(BOX, "Hello")
    async with held(page, "**/chats/*") as there:
        # Nothing but keys reaches a page that the browser is about to leave.
        await page.keyboard.press("Enter")
        await there.came.wait()
        for key in ("Enter", "Enter", "!", "Enter", "Enter"):
            await page.keyboard.press(key)
        there.go.set()
        await page.wait_for_url("**/chats/*")
    # What came too late for the message is kept.
    await expect(page.locator(BOX)).to_have_value("Hello!")
    assert sent == ["Hello"]
    assert len((await stage.server.client.get("/api/chats")).json()) == 1


async def test_a_command_is_waited_for_and_sends_nothing_that_is_attached(stage: Stage) -> None:
    page = await stage.open(await with_notes(stage))
    sent = sent_by(page)
    async with held(page, "**/commands") as command:
        await page.locator(BOX).press_sequentially("/csv")
        await expect(page.get_by_role("option", name="/csv-summary")).to_be_visible()
        await page.press(BOX, "Enter")
        await command.came.wait()
        await insist(page)
        # Another one waits in the box until this one is there.
        await page.locator(BOX).press_sequentially("/plain")
        await page.press(BOX, "Enter")
        await expect(page.locator(BOX)).to_have_value("/plain")
    await expect(page.locator(BOX)).to_have_value("/csv-summary \n\n/plain")
    assert sent == []
    await expect(page.locator(".attachment")).to_be_visible()


@pytest.mark.full
async def test_the_last_place_in_the_queue_is_taken_without_an_error_and_a_full_one_loses_nothing(
    chromium: Browser, tmp_path: Path
) -> None:
    async with staged(chromium, tmp_path, limits={"max_queued": 1}) as stage:
        stage.allow_refusals()
        going = asyncio.Event()
        stage.play([going, *says("one")], says("two"), says("three"))
        page = await stage.open(f"/chats/{await stage.asked('First')}")
        error = page.locator("[data-composer] [data-error] [role=alert]")
        waiting = page.locator(".queued")
        await page.fill(BOX, "Second")
        async with page.expect_response("**/messages"):
            await insist(page)
        await insist(page)
        await expect(waiting).to_have_count(1)
        await expect(error).to_have_count(0)
        await page.fill(BOX, "Third")
        await insist(page)
        await expect(error).to_have_count(1)
        await expect(error).to_contain_text("The queue of this chat is full; its limit is 1.")
        await expect(page.locator(BOX)).to_have_value("Third")
        going.set()
        await expect(waiting).to_have_count(0)
        await shows(page, "idle")
        await insist(page)
        await expect(page.locator(".mine .said")).to_have_text(["First", "Second", "Third"])
        await expect(error).to_have_count(0)
        await shows(page, "idle")
        assert len(await stage.requests(3)) == 3
