"""A question is the same in every tab, answered once, and what is typed into it stays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Stage
from tests.browser.stream.known import KnownAnswer
from tests.support.model_server import Exchange, Valve
from tests.support.model_wire import chat_ending, chat_event, http_chunk

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio


class Calls:
    """A reply that calls tools; a valve holds the arguments of the last call back."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], valve: Valve | None = None) -> None:
        self._calls = calls
        self._valve = valve or Valve(10_000)

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.head()
        last = len(self._calls) - 1
        for index, (name, arguments) in enumerate(self._calls):
            start = {"index": index, "id": f"{name}-{index}", "type": "function"}
            await self._send(exchange, {**start, "function": {"name": name, "arguments": ""}})
            raw = json.dumps(arguments)
            for number, letter in enumerate(raw):
                if index == last:
                    await self._valve.enter(number)
                await self._send(exchange, {"index": index, "function": {"arguments": letter}})
                if index == last:
                    await self._valve.note(number + 1)
        await exchange.send(b"".join(map(http_chunk, chat_ending("tool_calls"))))
        await exchange.end()

    async def _send(self, exchange: Exchange, call: dict[str, Any]) -> None:
        await exchange.chunk(chat_event({"tool_calls": [call]}))


NOTE = {"path": "note.txt", "content": "one\ntwo\n"}


def card(page: Page, which: int = 0) -> Locator:
    return page.locator(".ask-card").nth(which)


@pytest.mark.full
async def test_a_question_answered_in_one_tab_is_closed_in_all(stage: Stage) -> None:
    chat = await stage.new_chat()
    await stage.send(chat, "tabs ask", Calls(("write_file", NOTE)), KnownAnswer(["Written."]))
    first, second = await stage.open(chat), await stage.open(chat)
    await expect(card(first)).to_contain_text("note.txt")
    await first.reload()
    assert await shown.text_of(card(first)) == await shown.text_of(card(second))
    await card(second).get_by_role("button", name="Allow once").click()
    for page in (first, second):
        await expect(card(page)).to_have_count(0)
        await shown.until_done(page)
        await expect(page.locator(".answer")).to_have_text("Written.")
        assert await shown.kinds(page) == ["mine", "call", "answer", "foot"]
        await shown.is_tidy(page)


@pytest.mark.full
async def test_a_late_answer_is_refused_with_words(stage: Stage) -> None:
    chat = await stage.new_chat()
    await stage.send(chat, "late", Calls(("write_file", NOTE)), KnownAnswer(["Denied, then."]))
    page = await stage.open(chat)
    form = card(page).locator("form").first
    action = await form.get_attribute("action")
    await card(page).get_by_text("Deny…").click()
    await card(page).get_by_label("Reason").fill("not now")
    await card(page).get_by_role("button", name="Deny", exact=True).click()
    await shown.until_done(page)
    await expect(page.locator(".call")).to_have_attribute("data-status", "denied")
    late: dict[str, Any] = await page.evaluate(
        """async (action) => {
          const body = new URLSearchParams({decision: "allow"});
          const headers = {"HX-Request": "true"};
          const answer = await fetch(action, {method: "POST", body, headers});
          return {status: answer.status, text: await answer.text()};
        }""",
        action,
    )
    stage.complaints.allow("status of 4")
    assert 400 <= late["status"] < 500
    assert 'role="alert"' in late["text"]
    assert "Denied, then." in await page.locator(".answer").inner_text()


@pytest.mark.full
async def test_two_clicks_on_allow_run_the_tool_once(stage: Stage) -> None:
    stage.complaints.allow("409")  # what the later clicks are answered
    chat = await stage.new_chat()
    await stage.send(chat, "two clicks", Calls(("write_file", NOTE)), KnownAnswer(["Once."]))
    first, second = await stage.open(chat), await stage.open(chat)
    for page in (first, second):
        await card(page).get_by_role("button", name="Allow once").wait_for()
    for page in (first, second):
        # A real double click, and the same in another tab before that one has heard of it.
        await page.evaluate(
            """() => {
              const button = document.querySelector(".ask-card button[value=allow]");
              button?.click();
              button?.click();
            }"""
        )
    await shown.until_done(first)
    assert await shown.kinds(first) == ["mine", "call", "answer", "foot"]
    assert stage.model.asked("two clicks") == 2


async def test_what_is_typed_and_opened_survives_frames(stage: Stage) -> None:
    valve = Valve()
    chat = await stage.new_chat()
    calls = Calls(
        ("current_time", {}),
        ("write_file", NOTE),
        ("write_file", {"path": "long.txt", "content": "x" * 400}),
        valve=valve,
    )
    await stage.send(chat, "typing", calls, KnownAnswer(["All done."]))
    page = await stage.open(chat)
    await valve.open()
    await expect(page.locator(".ask-card")).to_have_count(2)
    time_call = page.locator(".call").first
    await time_call.locator("summary").first.click()
    first = card(page)
    await first.get_by_text("Edit…").click()
    box = first.get_by_label("Arguments, as JSON")
    await box.fill('{"path": "note.txt", "content": "mine"}')
    await box.press("Home")
    for _ in range(4):
        await box.press("ArrowRight")
    before = await _state(page)
    assert before["focus"].endswith("-arguments")
    # The other call is answered elsewhere: status line, its card and the side bar change.
    other = await stage.open(chat)
    await card(other, 1).get_by_role("button", name="Allow once").click()
    await expect(page.locator(".ask-card")).to_have_count(1)
    assert await _state(page) == before
    await box.press("x")
    assert (await _state(page))["text"] == '{"paxth": "note.txt", "content": "mine"}'
    await box.fill('{"path": "note.txt", "content": "mine"}')
    await first.get_by_role("button", name="Allow with these arguments").click()
    await shown.until_done(page)
    await expect(page.locator(".call").nth(1)).to_contain_text("you edited")
    assert await time_call.locator("details").first.evaluate("(each) => each.open")


@pytest.mark.full
async def test_an_opened_thought_stays_open_while_the_answer_streams(stage: Stage) -> None:
    valve = Valve()
    chat = await stage.new_chat()

    async def thinks(exchange: Exchange) -> None:
        await exchange.head()
        for number in range(6):
            await valve.enter(number)
            kind = "reasoning_content" if number < 4 else "content"
            await exchange.chunk(chat_event({kind: f"line {number}\n\n"}))
            await valve.note(number + 1)
        await exchange.send(b"".join(map(http_chunk, chat_ending())))
        await exchange.end()

    await stage.send(chat, "thoughts", thinks)
    page = await stage.open(chat)
    await valve.allow(2)
    thought = page.locator("details.thinking")
    await expect(thought).to_contain_text("line 1")
    await thought.locator("summary").click()
    await thought.locator("summary").focus()
    await valve.open()
    await shown.until_done(page)
    await expect(thought.locator("summary")).to_have_text("Thoughts")
    assert await thought.evaluate("(each) => each.open")
    assert await thought.locator("summary").evaluate("(each) => each === document.activeElement")


async def _state(page: Page) -> dict[str, Any]:
    """What a person has done to the page, as far as a frame could undo it."""
    state: dict[str, Any] = await page.evaluate(
        """() => {
          const box = document.activeElement;
          const details = [...document.querySelectorAll(".call details")].slice(0, 4);
          return {
            focus: box.id,
            text: box.value,
            caret: [box.selectionStart, box.selectionEnd],
            open: details.map((each) => each.open),
          };
        }"""
    )
    return state
