"""Skills in the page: called by name, uploaded, read, edited, switched off, deleted and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.harness.skills.writers import put, skill_md
from tests.support.axe import serious
from tests.support.scripted_provider import calls, says

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio


def skill(page: Page, name: str) -> Locator:
    return page.locator("li.skill").filter(has=page.get_by_text(name, exact=True))


async def open_chat(stage: Stage, **options: bool) -> Page:
    page = await stage.open(f"/chats/{await stage.server.new_chat()}", **options)
    await page.set_viewport_size({"width": 1400, "height": 900})
    return page


@pytest.mark.full
async def test_a_skill_is_called_by_its_name_and_the_transcript_says_so(stage: Stage) -> None:
    stage.play(calls(("use_skill", {"name": "plain-language"})), says("Done."))
    page = await open_chat(stage)
    box = page.locator(BOX)
    await box.press_sequentially("/csv")
    await expect(page.get_by_role("option", name="/csv-summary")).to_be_visible()
    await picture(page, "skill-commands")
    await box.press("Enter")
    await expect(box).to_have_value("/csv-summary ")
    await expect(page.locator("[data-command-place]")).to_contain_text("go with this message")
    await expect(box).to_be_focused()
    await box.press_sequentially("data.csv")
    await box.press("Enter")
    await shows(page, "idle")
    await expect(page.locator(".mine .attached summary")).to_contain_text("csv-summary skill")
    await expect(page.locator(".call .gist")).to_have_text("skill plain-language")
    (block,) = (await stage.requests(1))[0].messages[-1].attachments
    assert "scripts/summary.py" in block.text
    await expect(page.locator("[data-command-place]")).to_be_empty()


@pytest.mark.full
async def test_a_folder_is_uploaded_and_what_was_deleted_comes_back(
    stage: Stage, tmp_path: Path
) -> None:
    folder = put(tmp_path / "mine", "greeting", None, scripts__hello_sh="echo hello\n")
    page = await open_chat(stage)
    await page.locator(".skills > .more > summary").click()
    await page.locator("#skill-folder").set_input_files(folder)
    form = page.locator(".skills > .more form")
    await form.get_by_role("button", name="Add").click()
    await expect(form.get_by_role("status")).to_contain_text("Added greeting.")
    assert await page.locator("#skill-folder").input_value() == ""
    await expect(skill(page, "greeting")).to_contain_text("added by you")
    switch = page.get_by_role("switch", name="Use greeting in this chat")
    await switch.click()
    await expect(switch).to_have_attribute("aria-checked", "false")
    await skill(page, "greeting").get_by_role("button", name="Delete greeting").click()
    await expect(skill(page, "greeting")).to_have_count(0)
    assert await serious(page) == []
    await picture(page, "skills")
    await page.get_by_role("button", name="Undo").click()
    await expect(skill(page, "greeting")).to_be_visible()
    await expect(switch).to_have_attribute("aria-checked", "false")
    await skill(page, "greeting").get_by_role("link", name="Read greeting").click()
    await page.get_by_role("link", name="scripts/hello.sh").click()
    await expect(page.locator("pre")).to_have_text("echo hello\n")
    assert await serious(page) == []


@pytest.mark.full
async def test_without_script_a_skill_is_uploaded_edited_and_called(plain: Stage) -> None:
    page = await open_chat(plain, live=False)
    address = page.url
    await page.locator(".skills > .more > summary").click()
    await expect(page.locator("#skill-folder")).to_be_hidden()
    content = skill_md("greeting", body="Say *hello*.").encode()
    given = {"name": "any.md", "mimeType": "text/markdown", "buffer": content}
    await page.locator("#skill-file").set_input_files(given)  # type: ignore[arg-type]
    await page.locator(".skills > .more form").get_by_role("button", name="Add").click()
    await page.wait_for_url(address)
    await skill(page, "greeting").get_by_role("link", name="Edit greeting").click()
    text = page.get_by_label("SKILL.md")
    await text.fill((await text.input_value()).replace("*hello*", "**good day**"))
    await picture(page, "skill-edit")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".md strong")).to_have_text("good day")
    await picture(page, "skill")
    await page.get_by_role("link", name="Back to the chat").click()
    await page.fill(BOX, "/greeting Ada")
    await page.get_by_role("button", name="Send").click()
    (block,) = (await plain.requests(1))[0].messages[-1].attachments
    assert "Say **good day**." in block.text


@pytest.mark.full
async def test_two_editors_do_not_overwrite_each_other(stage: Stage, tmp_path: Path) -> None:
    put(tmp_path / "skills", "greeting", skill_md("greeting", body="First."))
    stage.allow_refusals()
    page = await open_chat(stage)
    await skill(page, "greeting").get_by_role("link", name="Edit greeting").click()
    (tmp_path / "skills/greeting/SKILL.md").write_text(skill_md("greeting", body="Theirs."))
    await page.get_by_label("SKILL.md").fill(skill_md("greeting", body="Mine."))
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("was changed meanwhile")
    await expect(page.locator("details pre")).to_contain_text("Theirs.")
    await expect(page.get_by_label("SKILL.md")).to_have_value(re.compile("Mine."))
    assert await serious(page) == []
    await picture(page, "skill-changed")
    await page.get_by_role("button", name="Save mine in its place").click()
    await expect(page.locator(".md")).to_contain_text("Mine.")


@pytest.mark.full
async def test_a_change_on_disk_shows_in_every_open_chat(stage: Stage, tmp_path: Path) -> None:
    # The second tab takes the stream of the first.
    pages = [await open_chat(stage), await open_chat(stage, live=False)]
    folder = put(tmp_path / "skills", "greeting")
    for page in pages:
        await expect(skill(page, "greeting")).to_be_visible()
    (folder / "SKILL.md").write_text("<img src=x onerror=alert(1)>")
    for page in pages:
        await expect(skill(page, "greeting").locator(".fault")).to_contain_text("front matter")
        await expect(page.get_by_role("switch", name="Use greeting")).to_have_count(0)
    (folder / "SKILL.md").unlink()
    folder.rmdir()
    for page in pages:
        await expect(skill(page, "greeting")).to_have_count(0)


@pytest.mark.full
async def test_a_narrow_page_in_the_dark_shows_all_of_it(stage: Stage, tmp_path: Path) -> None:
    put(tmp_path / "skills", "a-skill-with-a-name-" + "x" * 44)
    put(tmp_path / "skills", "broken", "nothing")
    page = await open_chat(stage)
    await page.set_viewport_size({"width": 380, "height": 844})
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.get_by_role("button", name="Setup", exact=True).click()
    await page.locator(".skills > .more > summary").click()
    await page.locator(".skills h3").scroll_into_view_if_needed()
    assert await page.evaluate("document.querySelector('#setup').scrollWidth") <= 380
    assert await serious(page) == []
    await picture(page, "skills-narrow-dark")
    await skill(page, "csv-summary").get_by_role("link", name="Read csv-summary").click()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 380
    assert await serious(page) == []
    await picture(page, "skill-narrow-dark")
