"""The card of a call that asks: what it shows, each way to answer it, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, STATUS, Stage, shows, written
from tests.support.scripted_provider import calls, says
from web.harness.values.messages import ToolResultBlock

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio


def write(
    path: str = "note.txt", content: str = "hello\n", **more: object
) -> tuple[str, dict[str, object]]:
    return ("write_file", {"path": path, "content": content, **more})


def card(page: Page, path: str = "") -> Locator:
    return page.locator(".ask-card", has_text=path)


async def open_way(card: Locator, words: str) -> None:
    await card.locator("summary", has_text=words).click()


@pytest.mark.full
async def test_a_new_file_shows_tool_arguments_and_what_is_written(
    stage: Stage, tmp_path: Path
) -> None:
    stage.play(calls(write(content="one\ntwo\n"), text="I write it."), says("Done so."))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await expect(card(page).get_by_role("heading")).to_have_text(
        "Allow write_file to write note.txt?"
    )
    await expect(card(page)).to_contain_text("New file")
    await expect(card(page).locator(".diff .add")).to_have_text(["added: one", "added: two"])
    await open_way(card(page), "Arguments")
    await expect(card(page).locator(".values dt")).to_have_text(["path", "content"])
    await expect(page.locator(STATUS)).to_contain_text("Needs your answer: write_file")
    await expect(page).to_have_title("Needs you: Write a note · harness-web")
    assert written(tmp_path, "note.txt") == []
    await card(page).get_by_role("button", name="Allow once").click()
    await expect(card(page)).to_have_count(0)
    await expect(page.locator(".answer").last).to_have_text("Done so.")
    assert written(tmp_path, "note.txt") == ["one\ntwo\n"]


@pytest.mark.full
async def test_a_changed_file_shows_its_difference(stage: Stage, tmp_path: Path) -> None:
    stage.play(
        calls(write(content="one\ntwo\nthree\n")),
        calls(write(content="one\n2\nthree\n", replace=True)),
        says("changed"),
    )
    chat = await stage.asked("Write, then change")
    page = await stage.open(f"/chats/{chat}")
    await card(page).get_by_role("button", name="Allow once").click()
    # Allowed once: the second call asks again, with what it would change.
    lines = card(page).locator(".diff > div")
    await expect(lines).to_have_text(["one", "removed: two", "added: 2", "three"])
    await expect(card(page).locator(".diff .cut")).to_have_count(1)
    await card(page).get_by_role("button", name="Allow once").click()
    await shows(page, "idle")
    assert written(tmp_path, "note.txt") == ["one\n2\nthree\n"]


@pytest.mark.full
async def test_allowed_for_this_chat_asks_no_second_time(stage: Stage, tmp_path: Path) -> None:
    stage.play(calls(write()), calls(write("two.txt")), says("both"))
    chat = await stage.asked("Write two")
    page = await stage.open(f"/chats/{chat}")
    await card(page).get_by_role("button", name="Allow in this chat").click()
    await expect(page.locator(".answer").last).to_have_text("both")
    assert written(tmp_path, "two.txt") == ["hello\n"]
    await shows(page, "idle")
    # Another turn of the chat does not ask either, but another chat does.
    stage.play(calls(write("three.txt")), says("three"))
    await stage.server.send(chat, "Write a third")
    await expect(page.locator(".answer").last).to_have_text("three")
    stage.play(calls(write("four.txt")))
    other = await stage.asked("Write a fourth")
    await page.goto(f"{stage.server.address}/chats/{other}")
    await expect(card(page, "four.txt")).to_be_visible()


@pytest.mark.full
async def test_a_tool_allowed_for_the_chat_is_shown_and_asks_again_when_told(stage: Stage) -> None:
    stage.play(calls(write()), says("one"))
    chat = await stage.asked("Write one")
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size({"width": 1400, "height": 800})
    tool = page.locator(".tools li", has_text="write_file")
    await expect(tool).to_contain_text("asks first")
    await card(page).get_by_role("button", name="Allow in this chat").click()
    await expect(tool.locator(".chip:visible")).to_have_text("allowed in this chat")
    await shows(page, "idle")
    await page.reload()
    await expect(tool.locator(".chip:visible")).to_have_text("allowed in this chat")
    await tool.get_by_role("button", name="Ask again").click()
    await expect(tool.locator(".chip:visible")).to_have_text("asks first")
    stage.play(calls(write("two.txt")))
    await stage.server.send(chat, "Write another")
    await expect(card(page, "two.txt")).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (380, 760)])
@pytest.mark.parametrize(
    ("way", "field", "button"),
    [
        ("Edit…", "Arguments, as JSON", "Allow with these arguments"),
        ("Deny…", "Reason, which the model reads (may be empty)", "Deny"),
    ],
)
async def test_an_opened_way_to_answer_comes_into_view_with_its_field_focused(
    stage: Stage, width: int, height: int, way: str, field: str, button: str
) -> None:
    chat = await stage.answered("Long", *says("paragraph\n\n" * 60))
    stage.play(calls(write(content="line\n" * 12)))
    await stage.server.send(chat, "Write a note")
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size({"width": width, "height": height})
    await expect(card(page)).to_be_visible()
    await open_way(card(page), way)
    await expect(card(page).get_by_label(field, exact=True)).to_be_focused()
    # The middle of the button is the button's: neither the dock nor "Jump to latest" covers it.
    submit = card(page).get_by_role("button", name=button, exact=True)
    on_top = """(element) => { const { left, top, width, height } = element.getBoundingClientRect();
        return element.contains(document.elementFromPoint(left + width / 2, top + height - 2)) }"""
    assert await submit.evaluate(on_top)


@pytest.mark.full
async def test_a_chat_that_is_gone_offers_nothing_that_can_only_fail(stage: Stage) -> None:
    stage.play(calls(write()))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await expect(card(page)).to_be_visible()
    await page.fill(BOX, "half a thought")
    await stage.server.client.delete(f"/api/chats/{chat}")
    await expect(page.locator("[data-banner]")).to_be_visible()
    for name in ("Allow once", "Edit…", "Stop", "Send"):
        await expect(page.get_by_text(name, exact=True)).to_be_hidden()
    await expect(page.locator(".composer [data-when-gone]")).to_be_visible()
    methods: list[str] = []
    page.on("request", lambda request: methods.append(request.method))
    await page.locator(BOX).press("Enter")
    await expect(page.locator(BOX)).to_have_value("half a thought")
    assert "POST" not in methods


@pytest.mark.full
async def test_a_note_about_the_end_of_a_file_is_whole_on_a_narrow_screen(stage: Stage) -> None:
    stage.play(calls(write(content="a word and " * 40)))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await page.set_viewport_size({"width": 380, "height": 760})
    await expect(card(page).locator(".diff .gap")).to_contain_text("does not end with a line break")
    cut = "(diff) => diff.scrollWidth - diff.clientWidth"
    assert await card(page).locator(".diff").evaluate(cut) <= 0


@pytest.mark.full
async def test_the_model_gets_the_reason_of_a_denial(stage: Stage, tmp_path: Path) -> None:
    stage.play(calls(write()), says("I understand."))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await open_way(card(page), "Deny…")
    await card(page).get_by_label("Reason").fill('Because of "<b>quotes</b>" & more')
    await card(page).get_by_role("button", name="Deny", exact=True).click()
    await expect(page.locator(".answer").last).to_have_text("I understand.")
    told = stage.model.requests[-1].messages[-1].content[0]
    assert isinstance(told, ToolResultBlock)
    assert told.is_error
    assert 'Because of "<b>quotes</b>" & more' in told.text
    await expect(page.locator(".call summary")).to_contain_text("denied")
    assert written(tmp_path, "note.txt") == []


WRONG = (
    ('{"path": "a.txt"', "not JSON"),
    ('["a.txt"]', "one JSON object"),
    ('{"path": "a.txt"}', "content"),
    ('{"path": {}, "content": "x"}', "path"),
    ('{"path": "../../a.txt", "content": "x"}', "is refused"),
)


async def test_arguments_that_do_not_fit_are_refused_in_the_card(
    stage: Stage, tmp_path: Path
) -> None:
    stage.allow_refusals()
    stage.play(calls(write()), says("written"))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await open_way(card(page), "Edit…")
    field = card(page).get_by_label("Arguments, as JSON")
    for edited, words in WRONG:
        await field.fill(edited)
        async with page.expect_response(lambda answer: "/approvals/" in answer.url) as answer:
            await card(page).get_by_role("button", name="Allow with these").click()
        assert (await answer.value).status == 422, edited
        await expect(card(page).get_by_role("alert")).to_contain_text(words)
        # The question stays open, and so does what was typed.
        await expect(field).to_have_value(edited)
    await field.fill('{"path": "right.txt", "content": "edited"}')
    await card(page).get_by_role("button", name="Allow with these").click()
    await expect(page.locator(".answer").last).to_have_text("written")
    assert written(tmp_path, "right.txt") == ["edited"]
    assert written(tmp_path, "note.txt") == []
    await page.click(".call summary")
    words = "The arguments are the ones you edited"
    await expect(page.locator(".call-body")).to_contain_text(words)


@pytest.mark.full
async def test_several_questions_are_answered_in_any_order(stage: Stage, tmp_path: Path) -> None:
    stage.play(calls(write("a.txt"), write("b.txt"), write("c.txt")), says("All answered."))
    chat = await stage.asked("Write three")
    page = await stage.open(f"/chats/{chat}")
    await expect(page.locator(".ask-card")).to_have_count(3)
    await card(page, "b.txt").get_by_role("button", name="Allow once").click()
    await expect(page.locator(".ask-card")).to_have_count(2)
    await shows(page, "asking")
    await page.reload()
    await expect(page.locator(".ask-card")).to_have_count(2)
    await open_way(card(page, "c.txt"), "Deny…")
    await card(page, "c.txt").get_by_role("button", name="Deny", exact=True).click()
    await expect(page.locator(".ask-card")).to_have_count(1)
    await card(page, "a.txt").get_by_role("button", name="Allow once").click()
    await expect(page.locator(".answer").last).to_have_text("All answered.")
    assert (written(tmp_path, "a.txt"), written(tmp_path, "b.txt")) == (["hello\n"], ["hello\n"])
    assert written(tmp_path, "c.txt") == []
    blocks = stage.model.requests[-1].messages[-1].content
    assert [block.is_error for block in blocks if isinstance(block, ToolResultBlock)] == [
        False,
        False,
        True,
    ]


@pytest.mark.full
async def test_a_question_is_the_same_after_a_refresh_and_in_every_tab(stage: Stage) -> None:
    stage.play(calls(write()), says("written"))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    html = await card(page).evaluate("(card) => card.outerHTML")
    other = await stage.open(f"/chats/{chat}", live=False)
    assert await card(other).evaluate("(card) => card.outerHTML") == html
    await page.reload()
    assert await card(page).evaluate("(card) => card.outerHTML") == html
    await card(other).get_by_role("button", name="Allow once").click()
    for tab in (page, other):
        await expect(card(tab)).to_have_count(0)
        await expect(tab.locator(".answer").last).to_have_text("written")


async def test_late_and_double_answers_are_refused_with_words(stage: Stage, tmp_path: Path) -> None:
    stage.allow_refusals()
    stage.play(calls(write("a.txt"), write("b.txt")), says("ended"))
    chat = await stage.asked("Write two")
    page = await stage.open(f"/chats/{chat}")
    first = await card(page, "a.txt").locator("form").first.get_attribute("action")
    second = await card(page, "b.txt").locator("form").first.get_attribute("action")

    async def post(action: str | None) -> str:
        """Posts the form of a stale page once more, as its script would."""
        return str(
            await page.evaluate(
                """async (action) => {
                  const body = new URLSearchParams({decision: "allow"});
                  const headers = {"HX-Request": "true"};
                  const answer = await fetch(action, {method: "POST", body, headers});
                  return `${answer.status} ${await answer.text()}`;
                }""",
                action,
            )
        )

    await open_way(card(page, "a.txt"), "Deny…")
    await card(page, "a.txt").get_by_role("button", name="Deny", exact=True).click()
    await expect(card(page, "a.txt")).to_have_count(0)
    double = await post(first)
    assert double.startswith("409 ")
    assert "answered already" in double
    unknown = await post(f"/chats/{chat}/approvals/call-0123")
    assert unknown.startswith("409 ")
    await card(page, "b.txt").get_by_role("button", name="Allow once").click()
    await expect(page.locator(".answer").last).to_have_text("ended")
    await shows(page, "idle")
    late = await post(second)
    assert late.startswith("409 ")
    assert "The run that asked this has ended." in late
    assert written(tmp_path, "a.txt") == []


@pytest.mark.full
async def test_a_page_that_was_cut_off_says_that_somebody_answered(stage: Stage) -> None:
    stage.complaints.allow("ERR_INTERNET_DISCONNECTED|Failed to fetch|ERR_FAILED")
    stage.allow_refusals()
    stage.play(calls(write()), [asyncio.Event(), *says("never")])
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    # Its stream is dead, so the card is still there when another tab has answered.
    await page.route("**/stream?*", lambda route: route.abort())
    await page.route("**/changes?*", lambda route: route.abort())
    await page.reload()
    key = await card(page).locator("form").first.get_attribute("action")
    assert key is not None
    run = (await stage.server.chat(chat))["active_run"]
    answer = await stage.server.client.post(
        f"/api/runs/{run}/approvals/{key.rpartition('/')[2]}", json={"decision": "allow"}
    )
    assert answer.is_success
    await card(page).get_by_role("button", name="Allow once").click()
    await expect(card(page).get_by_role("alert")).to_contain_text("answered already")


@pytest.mark.full
async def test_stopping_ends_a_question(stage: Stage, tmp_path: Path) -> None:
    stage.play(calls(write()), says("never"))
    chat = await stage.asked("Write a note")
    page = await stage.open(f"/chats/{chat}")
    await expect(card(page)).to_be_visible()
    await page.click("[data-stop]")
    await expect(card(page)).to_have_count(0)
    await expect(page.locator(".call summary")).to_contain_text("stopped")
    await shows(page, "idle")
    assert written(tmp_path, "note.txt") == []
