"""Nothing that a model, a tool, a model API or a person writes can run, load or leave its place."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect
from pydantic import SecretStr

from tests.browser.page.hostile import AUDIT, EVERYTHING, HOST, MARKDOWN, MARKUP
from tests.browser.page.stage import BOX, LOG, Stage, shows, staged, watched, written
from tests.support.app_server import served
from tests.support.model_server import ModelServer, sse, status
from tests.support.model_wire import chat_ending, chat_event
from tests.support.scripted_provider import Step, calls, says
from web.app import create_app
from web.harness.values.config import ModelName
from web.harness.values.model import ModelDone, TextChunk, ThinkingChunk
from web.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def nothing_runs(context: BrowserContext) -> AsyncIterator[None]:
    """Listens to `pwned()`, which no script may call."""
    ran: list[object] = []
    await context.expose_binding("pwned", lambda _, *said: ran.append(said))
    yield
    assert ran == []


async def sound(page: Page) -> None:
    """The page is as it should be, and still works."""
    assert await page.evaluate(AUDIT) == []
    await expect(page.locator(BOX)).to_be_editable()
    await expect(page.locator("#composer")).to_have_count(1)


def pieces(text: str, size: int = 11) -> Sequence[str]:
    """As a model streams: cut where it pleases."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def settings_for(server: ModelServer, folder: Path, model: str) -> Settings:
    """One model, which this server plays."""
    return Settings(
        data_dir=folder,
        model=(ModelName("openai", model),),
        openai_api_key=SecretStr("k"),
        openai_base_url=server.base_url,
    )


def thought_and_said(text: str) -> list[Step]:
    """An answer that thinks the text, says it, and ends."""
    return [
        *(ThinkingChunk(piece) for piece in pieces(text)),
        *(TextChunk(piece) for piece in pieces(text)),
        ModelDone("end_turn"),
    ]


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(EVERYTHING[::6], id="sample"),
        pytest.param(EVERYTHING, id="all", marks=pytest.mark.full),
    ],
)
async def test_a_model_says_it_over_the_wire(
    chromium: Browser, tmp_path: Path, texts: Sequence[str]
) -> None:
    """Each text in an answer of its own, from a model server, in pieces, then reloaded."""
    async with ModelServer() as model:
        settings = settings_for(model, tmp_path, "m")
        async with (
            served(create_app(settings)) as address,
            watched(chromium, address) as (context, _),
            nothing_runs(context),
        ):
            page = await context.new_page()
            await page.goto(address)
            for number, text in enumerate(texts):
                deltas = [chat_event({"content": piece}) for piece in pieces(text)]
                model.script(sse(b"".join([*deltas, *chat_ending()]), split=1_000))
                await page.fill(BOX, text if number % 2 else "Go on")
                await page.press(BOX, "Enter")
                await expect(page.locator(".foot")).to_have_count(number + 1)
            await sound(page)
            streamed = await page.locator(LOG).inner_text()
            await page.reload()
            await sound(page)
            assert await page.locator(LOG).inner_text() == streamed


@pytest.mark.full
async def test_it_is_thought_and_said_in_one_answer(stage: Stage) -> None:
    """All texts after one another: what one leaves open, the next one would close."""
    async with nothing_runs(stage.context):
        for texts in (MARKUP, MARKDOWN):
            stage.play(thought_and_said("\n\n".join(texts)))
            page = await stage.open()
            await page.fill(BOX, "\n".join(texts))
            await page.press(BOX, "Enter")
            await page.wait_for_url("**/chats/*")
            await expect(page.locator(".foot")).to_be_visible()
            await page.click(".thinking summary")
            await expect(page.locator(".thought")).to_be_visible()
            await sound(page)
            await page.reload()
            await sound(page)
            await page.close()


@pytest.mark.full
async def test_tools_are_called_with_it_and_return_it(stage: Stage, tmp_path: Path) -> None:
    everything = "\n".join(EVERYTHING)
    stage.play(
        calls(("write_file", {"path": "note.txt", "content": everything})),
        calls(
            ("read_file", {"path": "note.txt"}),
            ("read_file", {"path": "note.txt", **dict.fromkeys(MARKUP, "x")}),
            ("calculate", {"expression": everything}),
            ("<img src=x onerror=pwned('tool')>", {"__proto__": MARKUP, "constructor": {}}),
        ),
        says("ended"),
    )
    async with nothing_runs(stage.context):
        chat = await stage.asked("Use tools")
        page = await stage.open(f"/chats/{chat}")
        await expect(page.locator(".diff .add").first).to_be_visible()
        await sound(page)
        await page.locator(".ask-card summary", has_text="Edit…").click()
        field = page.locator(".ask-card [name=arguments]")
        assert json.loads(await field.input_value())["content"] == everything
        await page.get_by_role("button", name="Allow once").click()
        await shows(page, "idle")
        await sound(page)
        for summary in await page.locator(".call summary").all():
            await summary.click()
        await sound(page)
        assert written(tmp_path, "note.txt") == [everything]
        await page.reload()
        await sound(page)


NAMES = (
    "<img src=x onerror=pwned(1)>.txt",
    '"><script>pwned(2)<.txt',
    "' onfocus='pwned(3)' autofocus '.txt",
    "a\u202egnp.exe",
)


@pytest.mark.full
async def test_files_are_named_so(stage: Stage) -> None:
    stage.play(
        calls(*(("write_file", {"path": name, "content": "x"}) for name in NAMES)),
        calls(("list_files", {})),
        says("ended"),
    )
    async with nothing_runs(stage.context):
        chat = await stage.asked("Write")
        page = await stage.open(f"/chats/{chat}")
        await stage.requests(1)
        await expect(page.locator(".call")).to_have_count(len(NAMES))
        # The last is no name of a file, so nothing is asked.
        await expect(page.locator(".ask-card")).to_have_count(len(NAMES) - 1)
        await sound(page)
        while await page.locator(".ask-card").count():
            count = await page.locator(".ask-card").count()
            await page.get_by_role("button", name="Allow once").first.click()
            await expect(page.locator(".ask-card")).to_have_count(count - 1)
        await shows(page, "idle")
        await page.locator(".call summary").last.click()
        await expect(page.locator(".call").last).to_contain_text("<img src=x onerror=pwned(1)>")
        await sound(page)


@pytest.mark.full
async def test_chats_and_drafts_are_named_so(stage: Stage) -> None:
    async with nothing_runs(stage.context):
        page = await stage.open()
        for text in MARKUP:
            chat = await stage.server.new_chat(title=" ".join(text.split())[:200])
            await stage.server.client.post(f"/chats/{chat}/draft", data={"text": text})
        await expect(page.locator(".row-chat")).to_have_count(len(MARKUP))
        await sound(page)
        await page.goto(f"{stage.server.address}/chats/{chat}")
        assert await page.input_value(BOX) == MARKUP[-1]
        await sound(page)
        # The question before a deletion, in the dialog and on its own page, and the undo line.
        await page.locator(".head [data-confirm]").click()
        await expect(page.locator("dialog h2")).to_contain_text(MARKUP[-1])
        await page.keyboard.press("Escape")
        await page.goto(f"{stage.server.address}/chats/{chat}/delete")
        await expect(page.locator("h1")).to_contain_text(MARKUP[-1])
        await page.get_by_role("button", name="Delete").click()
        await expect(page.locator(".undo")).to_contain_text(MARKUP[-1])
        await sound(page)


@pytest.mark.full
async def test_a_model_api_fails_with_it(chromium: Browser, tmp_path: Path) -> None:
    everything = "\n".join(MARKUP)
    async with ModelServer() as model:
        settings = settings_for(model, tmp_path, "<script>pwned('model')</script>")
        async with (
            served(create_app(settings)) as address,
            watched(chromium, address) as (context, _),
            nothing_runs(context),
        ):
            page = await context.new_page()
            await page.goto(address)
            broken = b"data: " + json.dumps({"error": {"message": everything}}).encode() + b"\n\n"
            refused = status(400, {"error": {"message": everything, "code": MARKUP[0]}})
            # The last one breaks off once, which a notice tells of, and is then refused.
            for number, replies in enumerate(
                ([refused], [status(418, everything)], [sse(broken), refused])
            ):
                model.script(*replies)
                await page.fill(BOX, "Go on")
                await page.press(BOX, "Enter")
                await expect(page.locator(".failure")).to_have_count(number + 1)
                await shows(page, "failed")
                await sound(page)
            await page.reload()
            await sound(page)


@pytest.mark.full
async def test_the_servers_own_refusals_repeat_it(chromium: Browser, tmp_path: Path) -> None:
    limits = {"max_message_chars": 20}
    async with (
        staged(chromium, tmp_path, limits=limits) as stage,
        nothing_runs(stage.context),
    ):
        stage.allow_refusals()
        page = await stage.open()
        await page.evaluate(
            """(text) => {
              const form = document.createElement("form");
              form.method = "post";
              form.action = "/chats";
              for (const name of ["text", "model"]) {
                const field = document.createElement("textarea");
                field.name = name;
                field.value = text;
                form.append(field);
              }
              document.body.append(form);
              form.submit();
            }""",
            "\n".join(MARKUP),
        )
        await expect(page.locator("#typed")).to_be_visible()
        assert await page.input_value("#typed") == "\n".join(MARKUP).replace("\x00", "\ufffd")
        assert await page.locator("body.plain > *").count() == 1
        for path in (
            "/chats/%3Cscript%3Epwned(1)%3C/script%3E",
            "/%3Cimg%20src=x%20onerror=pwned(2)%3E",
        ):
            await page.goto(stage.server.address + path)
            await expect(page.locator("h1")).to_be_visible()


async def test_links_that_are_left_name_their_host_and_open_apart(stage: Stage) -> None:
    stage.play(says(f"![A picture]({HOST}/i.png) and [a page]({HOST}/page)"))
    chat = await stage.answered("Show me")
    page = await stage.open(f"/chats/{chat}")
    picture = page.locator(".image-link")
    await expect(picture).to_have_text("A picture evil.example")
    await expect(page.locator(".answer img")).to_have_count(0)
    link = page.get_by_role("link", name="a page")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
