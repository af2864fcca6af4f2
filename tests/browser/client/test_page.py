"""Title, theme, dialogs, keys and what else the page does around the log."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from starlette.responses import Response

from tests.browser.client.conftest import Scene
from tests.browser.client.server import Sent

pytestmark = pytest.mark.anyio

BOX = "[data-composer] textarea"
HIDE = """Object.defineProperty(Document.prototype, "hidden", {get: () => window.away});
  window.show = (seen) => { window.away = !seen;
    document.dispatchEvent(new Event("visibilitychange")); };"""


def status(state: str) -> str:
    busy = "true" if state == "working" else "false"
    return f'<div @ data-state="{state}" data-busy="{busy}">{state}</div>'


async def test_title_and_log_say_what_the_chat_does(scene: Scene) -> None:
    await scene.context.add_init_script(HIDE)
    page = await scene.open()
    scene.script.put("one", "the-head", "<div @><h1>Invoices</h1></div>", slot="head")
    scene.script.put("one", "the-status", status("working"), slot="status")
    log = page.locator("[data-log]")
    await expect(log).to_have_attribute("aria-busy", "true")
    await expect(page).to_have_title("Invoices · harness-web")
    scene.script.put("one", "the-status", status("asking"), slot="status")
    await expect(page).to_have_title("Needs you: Invoices · harness-web")
    await expect(log).to_have_attribute("aria-busy", "false")
    scene.script.put("one", "the-status", status("working"), slot="status")
    await expect(page).to_have_title("Invoices · harness-web")
    await page.evaluate("() => window.show(false)")
    scene.script.put("one", "the-status", status("idle"), slot="status")
    await expect(page).to_have_title("✓ Invoices · harness-web")
    await page.evaluate("() => window.show(true)")
    await expect(page).to_have_title("Invoices · harness-web")


@pytest.mark.full
async def test_the_open_chat_is_marked_in_the_side_bar_after_each_frame(scene: Scene) -> None:
    page = await scene.open()
    row = '<li @ data-chat-id="one"><a href="/chats/one">{}</a></li>'
    for text in ("Title", "Another title"):
        scene.script.put("chats", "row", row.format(text), slot="chats")
        await expect(page.locator("#row a")).to_have_text(text)
        await expect(page.locator("#row a")).to_have_attribute("aria-current", "page")


@pytest.mark.full
async def test_deleting_asks_in_a_dialog(scene: Scene) -> None:
    page = await scene.open()
    row = '<li @><a href="/chats/two/delete" data-confirm data-title="Two &amp; more">x</a></li>'
    scene.script.put("chats", "row", row, slot="chats")
    await page.click("#row a")
    dialog = page.locator("dialog")
    await expect(dialog).to_contain_text("Two & more")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.click("#row a")
    await page.click("[data-dialog-no]")
    await expect(dialog).to_be_hidden()
    assert scene.script.asked("/chats/two/delete", "POST") == []
    await page.click("#row a")
    await page.click("[data-dialog-yes]")
    await expect(dialog).to_be_hidden()
    assert len(scene.script.asked("/chats/two/delete", "POST")) == 1
    assert page.url.endswith("/chats/one")


@pytest.mark.full
async def test_after_deleting_the_open_chat_a_new_one_is_offered(scene: Scene) -> None:
    async def delete(_: Sent) -> Response:
        scene.script.end("one", "deleted")
        return Response("", headers={"HX-Trigger": "changed"})

    scene.script.answers["/chats/one/delete"] = delete
    page = await scene.open()
    row = '<li @><a href="/chats/one/delete" data-confirm data-title="One">x</a></li>'
    scene.script.put("chats", "row", row, slot="chats")
    await page.click("#row a")
    await page.click("[data-dialog-yes]")
    await page.wait_for_url("**/")


@pytest.mark.full
@pytest.mark.parametrize("secure", [True, pytest.param(False, marks=pytest.mark.full)])
async def test_code_is_copied_also_where_there_is_no_clipboard(scene: Scene, secure: bool) -> None:
    if secure:
        await scene.context.grant_permissions(["clipboard-read", "clipboard-write"])
    else:
        await scene.context.add_init_script("delete Navigator.prototype.clipboard")
        await scene.context.add_init_script(
            "addEventListener('copy', () => (window.copied = getSelection().toString()))"
        )
    page = await scene.open()
    code = '<div @ class="code"><button data-copy>Copy</button><pre>x = 1\ny = 2\n</pre></div>'
    scene.script.put("one", "code", code)
    button = page.locator("#code button")
    await button.click()
    await expect(button).to_have_text("Copied")
    read = "() => navigator.clipboard.readText()" if secure else "() => window.copied"
    assert (await page.evaluate(read)).split("\n")[:2] == ["x = 1", "y = 2"]
    await expect(button).to_have_text("Copy")


async def test_the_theme_is_switched_and_remembered(scene: Scene) -> None:
    page = await scene.open()
    root = page.locator("html")
    await page.click("[data-theme-choice=dark]")
    await expect(root).to_have_attribute("data-theme", "dark")
    cookies = await scene.context.cookies()
    assert [(each["name"], each["value"]) for each in cookies] == [("theme", "dark")]
    await page.click("[data-theme-choice=auto]")
    assert await root.get_attribute("data-theme") is None


async def test_keys_reach_the_message_box_and_a_new_chat(scene: Scene) -> None:
    page = await scene.open()
    await page.keyboard.press("/")
    await expect(page.locator(BOX)).to_be_focused()
    await page.keyboard.type("a/b")
    await expect(page.locator(BOX)).to_have_value("a/b")
    await page.keyboard.press("Control+Shift+O")
    await page.wait_for_url("**/")
