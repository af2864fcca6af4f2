"""Files are chosen, dropped and pasted; each is attached or refused in words."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.support.axe import serious
from tests.support.notes_server import PICTURE

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page, Route

pytestmark = pytest.mark.anyio

PNG = b64decode(PICTURE)
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 380, "height": 720}
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe"

TRANSFER = """({ type, files, texts }) => {
  const transfer = new DataTransfer();
  for (const { name, kind, bytes } of files) {
    transfer.items.add(new File([new Uint8Array(bytes)], name, { type: kind }));
  }
  for (const [kind, text] of Object.entries(texts)) transfer.setData(kind, text);
  const given = { bubbles: true, cancelable: true };
  const target = document.querySelector(type === "paste" ? "#message" : "[data-log]");
  const event = type === "paste"
    ? new ClipboardEvent(type, { ...given, clipboardData: transfer })
    : new DragEvent(type, { ...given, dataTransfer: transfer });
  return !target.dispatchEvent(event);
}"""
"""Does what a person's hand would; returns whether the page took it over."""


def file(name: str, content: bytes, kind: str = "application/octet-stream") -> Any:
    """A file as the chooser of a browser gives it."""
    return {"name": name, "mimeType": kind, "buffer": content}


async def hand_over(page: Page, event: str, *names: str, **texts: str) -> bool:
    """A drag or a paste of files with these names, each a picture, and of texts by their types."""
    files = [{"name": name, "kind": "image/png", "bytes": list(PNG)} for name in names]
    kinds = {f"text/{kind}": text for kind, text in texts.items()}
    given = {"type": event, "files": files, "texts": kinds}
    return bool(await page.evaluate(TRANSFER, given))


def chips(page: Page) -> Locator:
    return page.locator(".attachment")


def told(page: Page) -> Locator:
    return page.locator(".upload.told")


async def is_drawn(picture: Locator) -> None:
    """Waits until a picture has come."""
    await expect(picture).to_be_visible()
    await picture.evaluate("(image) => image.decode()")
    assert await picture.evaluate("(image) => image.naturalWidth") > 0


async def test_chosen_files_are_attached_looked_at_and_sent(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.fill(BOX, "What is this?")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_title("Attach files").click()
    chosen = [file("plan.png", PNG), file(HOSTILE, b"\0"), file("notes.md", b"Rain.")]
    await (await chooser.value).set_files(chosen)
    await expect(chips(page)).to_have_count(3)
    await expect(chips(page).nth(1)).to_contain_text("<img src=x onerror=alert(1)>gnp.exe")
    await expect(told(page)).to_have_text(re.compile("goes along by its name only"))
    await is_drawn(chips(page).locator("img"))
    await expect(page.locator(BOX)).to_have_value("What is this?")
    await page.press(BOX, "Enter")
    await is_drawn(page.locator(".mine .thumb"))
    await expect(page.locator(".mine details.attached")).to_contain_text("notes.md")
    await expect(page.locator(".mine .of-file")).to_contain_text("1 byte, among the chat")
    await expect(chips(page)).to_have_count(0)
    await expect(told(page)).to_have_count(0)
    await shows(page, "idle")
    message = (await stage.requests(1))[0].messages[0]
    assert [each.data for each in message.pictures] == [PNG]
    assert [each.name for each in message.attachments][1:] == ["notes.md"]


@pytest.mark.full
async def test_files_are_dropped_and_pasted_and_texts_are_left_alone(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    zone = page.locator("[data-drop-zone]")
    assert await hand_over(page, "dragenter", "a.png")
    await expect(zone).to_be_visible()
    assert not await hand_over(page, "dragleave", "a.png")
    await expect(zone).to_be_hidden()
    assert await hand_over(page, "dragover", "a.png")
    assert await hand_over(page, "drop", "a.png", "b.png")
    await expect(zone).to_be_hidden()
    await expect(chips(page)).to_have_text([re.compile("a.png"), re.compile("b.png")])
    assert not await hand_over(page, "dragover", plain="words")
    assert await hand_over(page, "paste", "image.png", html="<img src=x>")
    await expect(chips(page)).to_have_count(3)
    # What office programs copy: a text, with a picture of it.
    assert not await hand_over(page, "paste", "image.png", plain="words", html="<p>words")
    assert not await hand_over(page, "paste", plain="words")
    await expect(chips(page)).to_have_count(3)


@pytest.mark.full
async def test_on_a_new_page_files_make_the_chat_and_take_all_along(stage: Stage) -> None:
    page = await stage.open()
    await page.fill(BOX, "My words")
    await page.select_option("#model", index=1)
    files = [file("a.zip", b"PK\x03\x04"), file("b.txt", b"Rain.")]
    await page.set_input_files("[data-attach]", files)
    await page.wait_for_url("**/chats/*")
    await expect(chips(page)).to_have_count(2)
    await expect(told(page)).to_have_text(re.compile("a.zip goes along by its name only"))
    await expect(page.locator(BOX)).to_have_value("My words")
    await expect(page.locator("#chat-model")).to_have_value("openai:two")
    await page.reload()
    await expect(chips(page)).to_have_count(2)
    await expect(told(page)).to_have_count(0)
    other = await stage.open(live=False)
    await expect(other.locator(BOX)).to_have_value("")


@pytest.mark.full
async def test_a_message_of_a_new_page_waits_for_its_files_and_goes_in_their_chat(
    stage: Stage,
) -> None:
    page = await stage.open()
    going = asyncio.Event()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.continue_()

    await page.route("**/with-files", hold)
    await page.set_input_files("[data-attach]", [file("b.txt", b"Rain.")])
    await page.fill(BOX, "What is it?")
    await page.press(BOX, "Enter")
    going.set()
    await page.wait_for_url("**/chats/*")
    await expect(page.locator(".mine .said")).to_have_text("What is it?")
    await expect(page.locator(BOX)).to_have_value("")
    (request,) = await stage.requests(1)
    assert [each.name for each in request.messages[-1].attachments] == ["b.txt"]


@pytest.mark.full
async def test_what_is_too_much_is_told_and_keeps_nothing_else_from_going(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.evaluate("() => (document.querySelector('[data-attach]').dataset.mostBytes = 1000)")
    many = [file(f"{number}.txt", b"x") for number in range(12)]
    await page.set_input_files("[data-attach]", [file("big.bin", bytes(1_001)), *many])
    await expect(chips(page)).to_have_count(10)
    await expect(told(page).nth(0)).to_contain_text("big.bin is larger than")
    await expect(told(page).nth(1)).to_contain_text("2 files were left out: a message takes at")
    await told(page).first.get_by_role("button", name="Dismiss").click()
    await expect(told(page)).to_have_count(1)
    await chips(page).last.get_by_role("button").click()
    await expect(chips(page)).to_have_count(9)


@pytest.mark.full
async def test_a_message_waits_for_its_files_and_stays_where_one_is_refused(stage: Stage) -> None:
    stage.allow_refusals()
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    going = asyncio.Event()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.continue_()

    await page.route("**/uploads", hold)
    await page.set_input_files("[data-attach]", [file("a.png", PNG)])
    await page.fill(BOX, "Look")
    await page.press(BOX, "Enter")
    await expect(page.locator(".upload progress")).to_be_visible()
    await expect(page.locator(BOX)).to_have_value("Look")
    assert stage.model.requests == []
    going.set()
    await expect(page.locator(".mine .thumb")).to_be_visible()
    await page.unroute("**/uploads")

    going.clear()

    async def refuse(route: Route) -> None:
        await going.wait()
        html = '<p class="error" role="alert">Refused <small>Try less.</small></p>'
        await route.fulfill(status=422, content_type="text/html", body=html)

    await page.route("**/uploads", refuse)
    await page.set_input_files("[data-attach]", [file("b.png", PNG)])
    await page.fill(BOX, "Look again")
    await page.press(BOX, "Enter")
    going.set()
    await expect(told(page)).to_contain_text("Refused")
    await expect(page.locator(BOX)).to_have_value("Look again")
    await expect(page.locator(".mine")).to_have_count(1)


@pytest.mark.full
async def test_an_upload_is_cancelled_and_a_lost_server_is_told(stage: Stage) -> None:
    stage.complaints.allow(r"Failed to load resource: net::ERR_\w+")
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    going = asyncio.Event()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.abort()

    await page.route("**/uploads", hold)
    await page.set_input_files("[data-attach]", [file("a.png", PNG), file("b.png", PNG)])
    await page.get_by_role("button", name="Cancel").first.click()
    await expect(page.locator(".upload")).to_have_count(1)
    going.set()
    await expect(told(page)).to_contain_text("b.png: Not sent: the server can")
    await page.unroute("**/uploads")
    await page.set_input_files("[data-attach]", [file("b.png", PNG)])
    await expect(chips(page)).to_have_count(1)


@pytest.mark.full
async def test_without_script_files_are_attached_by_a_button_of_the_form(plain: Stage) -> None:
    page = await plain.open(live=False)
    await page.fill(BOX, "My words")
    await page.set_input_files("input[type=file]", [file("a.png", PNG), file("b.txt", b"Rain.")])
    await page.get_by_role("button", name="Attach", exact=True).click()
    await page.wait_for_url("**/chats/*")
    await expect(chips(page)).to_have_count(2)
    await expect(page.locator(BOX)).to_have_value("My words")
    await picture(page, "uploads-plain")
    await page.get_by_role("button", name="Send").click()
    await is_drawn(page.locator(".mine .thumb"))


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_it_can_be_looked_at_and_used_by_everybody(
    stage: Stage, scheme: Any, size: Any
) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    await page.set_viewport_size(size)
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    text = 900 * b"Rain. "
    files = [file("plan.png", PNG), file("report 2026.pdf", b"%PDF-1.7"), file("a.txt", text)]
    await page.set_input_files("[data-attach]", files)
    await expect(chips(page)).to_have_count(3)
    where = f"{'wide' if size is WIDE else 'narrow'}-{scheme}"
    await picture(page, f"uploads-{where}")
    assert await serious(page) == []
    await hand_over(page, "dragenter", "a.png")
    await picture(page, f"uploads-drop-{where}")
    await hand_over(page, "dragleave", "a.png")
    await page.fill(BOX, "What is in these?")
    await page.press(BOX, "Enter")
    await is_drawn(page.locator(".mine .thumb"))
    await shows(page, "idle")
    await picture(page, f"uploads-sent-{where}")
    assert await serious(page) == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert await page.evaluate(wide)


async def test_a_file_that_is_there_is_counted_once(stage: Stage) -> None:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    going = asyncio.Event()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.continue_()

    # The stream brings the chips while what the page asks for itself is late.
    await page.route("**/changes?*", hold)
    await page.set_input_files("[data-attach]", [file(f"{name}.png", PNG) for name in "abcd"])
    await expect(chips(page)).to_have_count(4)
    await expect(page.locator(".upload[data-taken]")).to_have_count(4)
    await page.set_input_files("[data-attach]", [file(f"{name}.png", PNG) for name in "efghijk"])
    await expect(told(page)).to_contain_text("k.png was left out")
    await expect(chips(page)).to_have_count(10)
    going.set()
    await expect(page.locator(".upload[data-taken]")).to_have_count(0)


async def test_a_picture_that_met_a_server_that_was_down_comes_by_itself(stage: Stage) -> None:
    stage.allow_refusals()
    page = await stage.open(f"/chats/{await stage.server.new_chat()}")
    failing = 2

    async def refuse(route: Route) -> None:
        nonlocal failing
        failing -= 1
        await (route.fulfill(status=503) if failing >= 0 else route.continue_())

    await page.route("**/blobs/*", refuse)
    await page.set_input_files("[data-attach]", [file("plan.png", PNG)])
    await expect(chips(page)).to_have_count(1)
    await page.wait_for_function("() => document.querySelector('.attachment img').naturalWidth > 0")
    assert failing < 0
