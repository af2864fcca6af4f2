"""What is typed and not sent: kept in the browser until the server has it."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect
from starlette.responses import HTMLResponse, Response

from tests.browser.client.conftest import Scene
from tests.browser.client.pages import form
from tests.browser.client.server import Sent, error

pytestmark = pytest.mark.anyio

BOX = "[data-composer] textarea"


def drafts(scene: Scene) -> list[str]:
    return [each.form["text"] for each in scene.script.asked("/chats/one/draft", "POST")]


@pytest.mark.full
async def test_a_draft_survives_reload_and_switching_and_reaches_the_server(scene: Scene) -> None:
    page = await scene.open()
    await page.fill(BOX, "for one")
    await page.goto(scene.address + "/chats/two")
    await expect(page.locator(BOX)).to_have_value("")
    await page.fill(BOX, "for two")
    await page.goto(scene.address + "/")
    await page.fill(BOX, "for a new one")
    await page.goto(scene.address + "/chats/one")
    await expect(page.locator(BOX)).to_have_value("for one")
    await scene.script.until(lambda: drafts(scene)[-1:] == ["for one"])
    await page.goto(scene.address + "/")
    await expect(page.locator(BOX)).to_have_value("for a new one")
    await page.goto(scene.address + "/chats/one")
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    await page.reload()
    await expect(page.locator(BOX)).to_have_value("")


@pytest.mark.parametrize("since", ["", "typed on the phone"], ids=["sent there", "typed there"])
async def test_a_draft_that_was_changed_elsewhere_since_is_not_undone(
    scene: Scene, since: str
) -> None:
    page = await scene.open()
    await page.fill(BOX, "typed here")
    # From then on the server has it, and this browser's copy counts no more.
    await page.wait_for_function("() => localStorage.getItem('harness-web:draft:one') === null")
    assert drafts(scene) == ["typed here"]
    scene.script.drafts["one"] = since
    await page.reload()
    await expect(page.locator(BOX)).to_have_value(since)


async def test_a_draft_that_the_server_did_not_take_is_kept_here(scene: Scene) -> None:
    scene.complaints.allow("503|Failed to load")

    async def refuse(_: Sent) -> Response:
        return error("The store is away.", 503)

    scene.script.answers["/chats/one/draft"] = refuse
    page = await scene.open()
    await page.fill(BOX, "typed here")
    await scene.script.until(lambda: drafts(scene) == ["typed here"])
    await page.reload()
    await expect(page.locator(BOX)).to_have_value("typed here")


@pytest.mark.full
async def test_a_message_says_which_draft_it_was(scene: Scene) -> None:
    page = await scene.open()
    await page.fill(BOX, "half")
    await page.wait_for_function("() => localStorage.getItem('harness-web:draft:one') === null")
    await page.fill(BOX, "half a thought")
    await page.press(BOX, "Enter")
    await scene.script.until(lambda: drafts(scene) == ["half", ""])
    (message,) = scene.script.asked("/chats/one/messages", "POST")
    assert (message.form["text"], message.form["draft"]) == ("half a thought", "half")


@pytest.mark.full
async def test_a_draft_that_comes_after_its_message_is_emptied(scene: Scene) -> None:
    comes = asyncio.Event()

    async def later(_: Sent) -> Response:
        await comes.wait()
        return Response(status_code=204)

    scene.script.answers["/chats/one/draft"] = later
    page = await scene.open()
    await page.fill(BOX, "half")
    await scene.script.until(lambda: drafts(scene) == ["half"])
    await page.fill(BOX, "half a thought")
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    comes.set()
    await scene.script.until(lambda: drafts(scene) == ["half", ""])


@pytest.mark.full
async def test_what_was_taken_back_and_emptied_at_once_is_no_draft(scene: Scene) -> None:
    """The server has it in the draft before the page does."""
    path = "/chats/one/queue/m1/take-back"
    told = {"HX-Trigger": "changed", "HX-Reswap": "none"}

    async def bring(_: Sent) -> Response:
        return HTMLResponse("<textarea hidden>\nqueued words</textarea>", headers=told)

    scene.script.answers[path] = bring
    item = f"<li @>queued words {form(path, '<button>Take back</button>')}</li>"
    scene.script.put("one", "queued", item, slot="queue")
    page = await scene.open()
    await page.click("#queued button")
    await expect(page.locator(BOX)).to_have_value("queued words")
    await page.fill(BOX, "")
    await scene.script.until(lambda: drafts(scene)[-1:] == [""])
