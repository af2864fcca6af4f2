"""What is typed and not sent: kept in the browser until the server has it."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from starlette.responses import Response

from tests.browser.client.conftest import Scene
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
