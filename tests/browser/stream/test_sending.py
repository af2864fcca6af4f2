"""One message is sent once; another one waits where it is seen, and is never lost."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Stage
from tests.browser.stream.known import KnownAnswer
from tests.support.model_server import Valve

pytestmark = pytest.mark.anyio


@pytest.mark.full
@pytest.mark.parametrize("way", ["two clicks", "Enter twice"])
async def test_sending_twice_quickly_sends_once(stage: Stage, way: str) -> None:
    prompt = f"only once: {way}"
    stage.model.replies[prompt] = [KnownAnswer(["Once."]), KnownAnswer(["Twice!"])]
    page = await stage.open(await stage.new_chat())
    box = page.get_by_label("Message", exact=True)
    await box.fill(prompt)
    if way == "two clicks":
        await page.get_by_role("button", name="Send", exact=True).dblclick()
    else:
        await page.evaluate(
            """() => {
              const box = document.querySelector("[data-composer] textarea");
              const enter = {key: "Enter", code: "Enter", bubbles: true, cancelable: true};
              for (let n = 0; n < 2; n += 1) box.dispatchEvent(new KeyboardEvent("keydown", enter));
            }"""
        )
    await shown.until_done(page)
    await expect(page.locator(".mine")).to_have_count(1)
    await expect(page.locator(".answer")).to_have_text("Once.")
    await expect(box).to_have_value("")
    assert stage.model.asked(prompt) == 1


async def test_the_same_request_id_again_starts_nothing(stage: Stage) -> None:
    stage.model.replies["repeated"] = [KnownAnswer(["Once."]), KnownAnswer(["Twice!"])]
    chat = await stage.new_chat()
    fields = {"text": "repeated", "request_id": "the-same"}
    for _ in range(3):
        answer = await stage.client.post(f"/chats/{chat}/messages", data=fields)
        assert answer.status_code == 303
    page = await stage.open(chat)
    await shown.until_done(page)
    assert await shown.kinds(page) == ["mine", "answer", "foot"]
    assert stage.model.asked("repeated") == 1
    new = {"text": "repeated in a new chat", "request_id": "new-chat"}
    stage.model.replies[new["text"]] = [KnownAnswer(["Once."]), KnownAnswer(["Twice!"])]
    places = {(await stage.client.post("/chats", data=new)).headers["location"] for _ in range(3)}
    assert len(places) == 1
    await page.goto(stage.address + places.pop())
    await shown.until_done(page)
    assert await shown.kinds(page) == ["mine", "answer", "foot"]
    assert stage.model.asked(new["text"]) == 1


@pytest.mark.full
async def test_a_message_that_waits_can_be_taken_back_or_is_sent_afterwards(stage: Stage) -> None:
    valve = Valve()
    chat = await stage.new_chat()
    await stage.send(chat, "the first", KnownAnswer(["One ", "two."], valve=valve))
    page, other = await stage.open(chat), await stage.open(chat)
    box = page.get_by_label("Message", exact=True)
    queue = page.locator(".queue > li")
    stage.model.replies["the third"] = [KnownAnswer(["Third."])]
    for text in ("the second", "the third"):
        await box.fill(text)
        await box.press("Enter")
        await expect(queue.last).to_contain_text(text)
        await expect(other.locator(".queue > li").last).to_contain_text(text)
    await page.reload()
    await queue.first.get_by_role("button", name="Take back").click()
    await expect(queue).to_have_count(1)
    await expect(box).to_have_value("the second")
    await valve.open()
    await expect(page.locator(".answer").last).to_have_text("Third.")
    await expect(queue).to_have_count(0)
    await expect(page.locator(".mine .said")).to_have_text(["the first", "the third"])
    await expect(box).to_have_value("the second")
    assert stage.model.asked("the second") == 0
