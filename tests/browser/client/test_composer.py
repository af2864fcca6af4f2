"""Sending and keeping what a person types."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect
from starlette.responses import HTMLResponse, Response

from tests.browser.client.conftest import Scene
from tests.browser.client.pages import form
from tests.browser.client.server import Sent, error
from tests.support.browser import scrolled

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

pytestmark = pytest.mark.anyio

BOX = "[data-composer] textarea"
SEND = "/chats/one/messages"


def messages(scene: Scene) -> list[str]:
    return [each.form["text"] for each in scene.script.asked(SEND, "POST")]


def drafts(scene: Scene) -> list[str]:
    return [each.form["text"] for each in scene.script.asked("/chats/one/draft", "POST")]


async def accept(_: Sent) -> Response:
    return Response("", headers={"HX-Trigger": "changed"})


class Held:
    """An answer that waits until the test lets it go."""

    def __init__(self, answer: Response | None = None) -> None:
        self.go = asyncio.Event()
        self.answer = answer

    async def __call__(self, sent: Sent) -> Response:
        await self.go.wait()
        return self.answer or await accept(sent)


@pytest.mark.full
async def test_enter_sends_and_shift_enter_breaks_the_line(scene: Scene) -> None:
    page = await scene.open()
    await page.click(BOX)
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await page.keyboard.press("Enter")
    await expect(page.locator(BOX)).to_have_value("")
    assert [text.splitlines() for text in messages(scene)] == [["one", "two"]]
    await page.keyboard.press("Enter")
    await page.keyboard.type("three")
    await page.keyboard.press("Enter")
    await expect(page.locator(BOX)).to_have_value("")
    assert messages(scene)[1:] == ["three"]
    ids = [each.form["request_id"] for each in scene.script.asked(SEND, "POST")]
    assert ids[0] == "from-the-page"
    assert len(set(ids)) == 2


async def test_enter_that_ends_a_composition_does_not_send(scene: Scene) -> None:
    page = await scene.open()
    await page.click(BOX)
    client = await scene.context.new_cdp_session(page)
    await client.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    await client.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    await client.send("Input.insertText", {"text": "日本"})
    await client.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
    assert await page.input_value(BOX) == "日本"
    # Safari says that the composition has ended before it says which key did it.
    await page.evaluate(
        """(box) => {
          const element = document.querySelector(box);
          element.dispatchEvent(new CompositionEvent("compositionend", {bubbles: true}));
          const key = {key: "Enter", bubbles: true, cancelable: true};
          element.dispatchEvent(new KeyboardEvent("keydown", {...key, keyCode: 13}));
          element.dispatchEvent(new KeyboardEvent("keydown", {...key, keyCode: 229}));
          element.dispatchEvent(new KeyboardEvent("keydown", {...key, isComposing: true}));
        }""",
        BOX,
    )
    await page.wait_for_function(
        "(since) => performance.now() > since + 60", arg=await page.evaluate("performance.now()")
    )
    assert messages(scene) == []
    await page.keyboard.press("Enter")
    await scene.script.until(lambda: messages(scene) == ["日本"])


async def test_two_quick_sends_are_one_request(scene: Scene) -> None:
    scene.script.answers[SEND] = held = Held()
    page = await scene.open()
    await page.fill(BOX, "once")
    await page.press(BOX, "Enter")
    await page.press(BOX, "Enter")
    await page.dblclick("[data-composer] button")
    held.go.set()
    await expect(page.locator(BOX)).to_have_value("")
    await page.fill(BOX, "again")
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    assert messages(scene) == ["once", "again"]


async def test_another_message_that_is_sent_meanwhile_follows_by_itself(scene: Scene) -> None:
    scene.script.answers[SEND] = held = Held()
    page = await scene.open()
    await page.fill(BOX, "first")
    await page.press(BOX, "Enter")
    await page.fill(BOX, "second")
    await page.press(BOX, "Enter")
    await page.press(BOX, "Enter")
    await scene.script.until(lambda: messages(scene) == ["first"])
    held.go.set()
    await scene.script.until(lambda: len(messages(scene)) > 1)
    await expect(page.locator(BOX)).to_have_value("")
    await page.press(BOX, "Enter")
    await page.fill(BOX, "third")
    await page.press(BOX, "Enter")
    await scene.script.until(lambda: messages(scene)[-1] == "third")
    assert messages(scene) == ["first", "second", "third"]


async def test_a_key_that_is_held_down_sends_once(scene: Scene) -> None:
    scene.complaints.allow("409|Response Status Error")
    scene.script.answers[SEND] = held = Held(error("This chat is busy."))
    page = await scene.open()
    await page.fill(BOX, "precious")
    await page.keyboard.down("Enter")
    held.go.set()
    await expect(page.locator("[data-composer] [role=alert]")).to_have_text("This chat is busy.")
    await page.keyboard.down("Enter")
    await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    scene.script.answers[SEND] = accept
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    assert len(messages(scene)) == 2


async def test_a_button_is_not_pressed_again_before_what_became_of_it_is_shown(
    scene: Scene,
) -> None:
    path, going = "/chats/one/retry", asyncio.Event()
    asked = f"<div @>Failed {form(path, '<button>Try again</button>')}</div>"
    scene.script.put("one", "failed", asked)
    page = await scene.open()

    async def hold(route: Route) -> None:
        await going.wait()
        await route.continue_()

    await page.route("**/changes?*", hold)
    async with page.expect_response(f"**{path}"):
        await page.click("#failed button")
    await page.dblclick("#failed button")
    going.set()
    scene.script.put("one", "failed", asked.replace("Failed", "Failed again"))
    await expect(page.locator("#failed")).to_contain_text("Failed again")
    # It is a new question then; as soon as the page knows, it can be answered.
    await page.wait_for_function(
        """() => { const twice = performance.getEntriesByType("resource").filter(
            (each) => each.name.endsWith("/retry")).length > 1;
          if (!twice) document.querySelector("#failed button").click();
          return twice; }"""
    )
    assert len(scene.script.asked(path, "POST")) == 2


@pytest.mark.full
async def test_what_is_typed_while_a_message_is_sent_stays(scene: Scene) -> None:
    scene.script.answers[SEND] = held = Held()
    page = await scene.open()
    await page.fill(BOX, "first")
    await page.press(BOX, "Enter")
    await page.fill(BOX, "second")
    held.go.set()
    await scene.script.until(lambda: drafts(scene)[-1:] == ["second"])
    assert await page.input_value(BOX) == "second"
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    assert messages(scene) == ["first", "second"]


async def test_an_error_stands_in_the_form_and_loses_nothing(scene: Scene) -> None:
    scene.complaints.allow("409|ERR_|Failed to load|Response Status Error|htmx")

    async def refuse(_: Sent) -> Response:
        return error("This chat is busy.")

    scene.script.answers[SEND] = refuse
    page = await scene.open()
    await page.fill(BOX, "precious")
    await page.press(BOX, "Enter")
    line = page.locator("[data-composer] [role=alert]")
    await expect(line).to_have_text("This chat is busy.")
    await expect(page.locator(BOX)).to_have_value("precious")
    await scene.context.set_offline(True)
    await page.press(BOX, "Enter")
    await expect(line).to_contain_text("be reached")
    await expect(page.locator(BOX)).to_have_value("precious")
    await scene.context.set_offline(False)
    # The same text keeps its id, so that a request that did arrive is not doubled.
    scene.script.answers[SEND] = accept
    await page.press(BOX, "Enter")
    await expect(page.locator(BOX)).to_have_value("")
    await expect(line).to_have_count(0)
    ids = [each.form["request_id"] for each in scene.script.asked(SEND, "POST")]
    assert ids == ["from-the-page", "from-the-page"]


@pytest.mark.full
@pytest.mark.parametrize("cut", [True, False], ids=["the stream too", "not the stream"])
async def test_that_the_server_is_away_is_said_no_longer_than_it_is_so(
    scene: Scene, cut: bool
) -> None:
    scene.complaints.allow("ERR_|Failed to load|htmx")
    page = await scene.open()
    await page.fill(BOX, "precious")
    await scene.context.set_offline(True)
    if cut:
        scene.script.cut()
        await expect(page.locator("[data-banner]")).to_contain_text("No connection")
        await expect(page.locator("[data-banner]")).to_be_visible()
    await page.press(BOX, "Enter")
    line = page.locator("[data-composer] [role=alert]")
    await expect(line).to_contain_text("be reached")
    await scene.context.set_offline(False)
    await expect(line).to_have_count(0)
    await expect(page.locator(BOX)).to_have_value("precious")


@pytest.mark.full
async def test_a_refusal_takes_the_place_of_an_earlier_one(scene: Scene) -> None:
    scene.complaints.allow("409|Response Status Error")

    async def refuse(sent: Sent) -> Response:
        return error(f"Refused: {sent.path}")

    scene.script.answers[SEND] = scene.script.answers["/other"] = refuse
    scene.script.put("one", "a", f"<div @>{form('/other', '<button>Other</button>')}</div>")
    page = await scene.open()
    lines = page.locator("[role=alert]")
    await page.fill(BOX, "precious")
    await page.press(BOX, "Enter")
    await expect(lines).to_have_text([f"Refused: {SEND}"])
    await page.click("#a button")
    await expect(lines).to_have_text(["Refused: /other"])


@pytest.mark.full
async def test_a_changed_text_is_tried_under_another_id(scene: Scene) -> None:
    scene.complaints.allow("409|Response Status Error")

    async def refuse(_: Sent) -> Response:
        return error("no")

    scene.script.answers[SEND] = refuse
    page = await scene.open()
    for text in ("one", "two"):
        await page.fill(BOX, text)
        await page.press(BOX, "Enter")
        await scene.script.until(lambda: messages(scene)[-1:] == [text])  # noqa: B023
        await expect(page.locator("[data-composer] [role=alert]")).to_have_text("no")
    ids = [each.form["request_id"] for each in scene.script.asked(SEND, "POST")]
    assert len(set(ids)) == 2


@pytest.mark.full
async def test_a_new_chat_takes_along_what_was_typed_meanwhile(scene: Scene) -> None:
    there = Response("", headers={"HX-Redirect": "/chats/born"})
    scene.script.answers["/chats"] = held = Held(there)
    page = await scene.open("/")
    await page.fill(BOX, "hello")
    await page.press(BOX, "Enter")
    await page.fill(BOX, "and more")
    held.go.set()
    await page.wait_for_url("**/chats/born")
    await expect(page.locator(BOX)).to_have_value("and more")
    await page.goto(scene.address + "/")
    await expect(page.locator(BOX)).to_have_value("")


async def test_taking_a_message_back_puts_it_before_what_is_typed(scene: Scene) -> None:
    path = "/chats/one/queue/m1/take-back"
    told = {"HX-Trigger": "changed", "HX-Reswap": "none"}
    brought = HTMLResponse("<textarea hidden>\nqueued words</textarea>", headers=told)
    scene.script.answers[path] = held = Held(brought)
    item = f"<li @>queued words {form(path, '<button>Take back</button>')}</li>"
    scene.script.put("one", "queued", item, slot="queue")
    page = await scene.open()
    await page.fill(BOX, "new words")
    await page.click("#queued button")
    await scene.script.until(lambda: bool(scene.script.asked(path, "POST")))
    # The stream may take the message off the page before its answer is here.
    scene.script.remove("one", "queued")
    await expect(page.locator("#queued")).to_have_count(0)
    held.go.set()
    await expect(page.locator(BOX)).to_have_value("queued words\n\nnew words")


async def test_an_error_in_the_log_outlives_frames_of_its_part(scene: Scene) -> None:
    scene.complaints.allow("409|Response Status Error")
    path = "/chats/one/approvals/k"

    async def refuse(_: Sent) -> Response:
        return error("Somebody answered already.")

    scene.script.answers[path] = refuse
    page = await scene.open()
    for n in range(2):
        card = f"<div @><p>version {n}</p>{form(path, '<button>Allow</button>')}</div>"
        scene.script.put("one", "call", card)
        await expect(page.locator("#call p").first).to_have_text(f"version {n}")
        if n == 0:
            await page.click("#call button")
        await expect(page.locator("#call [role=alert]")).to_have_text("Somebody answered already.")


async def fill_log(scene: Scene, page: Page, first: int, count: int) -> None:
    for n in range(first, first + count):
        scene.script.put("one", f"p{n}", f"<p @>paragraph {n}</p>")
    await expect(page.locator(f"#p{first + count - 1}")).to_be_attached()


BELOW = """() => { const log = document.querySelector("[data-log]");
  return Math.round(log.scrollHeight - log.clientHeight - log.scrollTop); }"""
AT_END = f"() => ({BELOW})() <= 1"


@pytest.mark.full
async def test_the_log_follows_only_a_reader_at_its_end(scene: Scene) -> None:
    page = await scene.open()
    await fill_log(scene, page, 0, 40)
    await page.wait_for_function(AT_END)
    jump = page.locator("[data-jump]")
    await expect(jump).to_be_hidden()
    await scrolled(page, "[data-log]", -300)
    await expect(jump).to_be_visible()
    top = "() => document.querySelector('[data-log]').scrollTop"
    before = await page.evaluate(top)
    await fill_log(scene, page, 40, 5)
    assert await page.evaluate(top) == before
    await page.set_viewport_size({"width": 600, "height": 700})
    assert await page.evaluate(top) == before
    await jump.click()
    await page.wait_for_function(AT_END)
    await expect(jump).to_be_hidden()
    await fill_log(scene, page, 45, 5)
    await page.wait_for_function(AT_END)
    await scrolled(page, "[data-log]", -300)
    await expect(jump).to_be_visible()
    await page.fill(BOX, "mine")
    await page.press(BOX, "Enter")
    await page.wait_for_function(AT_END)


@pytest.mark.full
async def test_an_opened_line_at_the_end_stays_where_it_is(scene: Scene) -> None:
    page = await scene.open()
    await fill_log(scene, page, 0, 40)
    tall = "<p>line</p>" * 30
    scene.script.put("one", "call", f"<details @><summary>tool</summary>{tall}</details>")
    await expect(page.locator("#call")).to_be_attached()
    await page.wait_for_function(AT_END)
    await page.click("#call summary")
    await expect(page.locator("[data-jump]")).to_be_visible()
    await expect(page.locator("#call summary")).to_be_in_viewport()
