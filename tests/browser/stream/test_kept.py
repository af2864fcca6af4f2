"""A server that is killed and started again on the same store: open tabs go on by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import Model, Stage, known_server
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.browser import Complaints
from tests.support.model_server import Exchange, Reply, Valve
from tests.support.serving import Serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

TOKENS = pieces(mix(1_500), seed=6)
HALF = 60
"""Tokens that are said before the server is killed."""

SETTLED = shown.settled(TOKENS[:HALF])
WHOLE = shown.words_in("".join(TOKENS))

LOG = """() => [...document.querySelectorAll('[role=log] [data-part]')]
    .map(part => part.id + ': ' + part.innerText)"""


async def log(page: Page) -> list[str]:
    found: list[str] = await page.evaluate(LOG)
    return found


def half(tokens: list[str], stops: int) -> Reply:
    """The first tokens, and no more for as long as somebody listens."""

    async def reply(exchange: Exchange) -> None:
        valve = Valve()
        await valve.allow(stops)
        # The server is killed meanwhile; a started one may take longer than a valve waits.
        with suppress(TimeoutError):
            await KnownAnswer(tokens, valve=valve)(exchange)

    return reply


@asynccontextmanager
async def staged(model: Model, chromium: Browser, address: str) -> AsyncIterator[Stage]:
    context = await chromium.new_context()
    context.set_default_timeout(15_000)
    complaints = Complaints(context)
    complaints.allow("ERR_|Failed to load resource")
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        yield Stage(address, model, context, complaints, client)
    await context.close()
    assert complaints.unexpected == []


async def killed_in_mid_answer(stage: Stage, server: Serving, *replies: Reply) -> tuple[str, Page]:
    """A chat with a finished answer and one that was cut off, and a page that somebody types in."""
    chat = await stage.new_chat()
    await stage.send(chat, "first", KnownAnswer(["All is", " well."]))
    page = await stage.open(chat)
    await shown.until_done(page, seconds=20)
    await stage.send(chat, "killed", half(TOKENS, HALF), *replies)
    await shown.until_words(page, SETTLED, 20)
    await page.get_by_label("Message", exact=True).fill("what I was typing")
    server.process.kill()
    server.process.wait(timeout=10)
    return chat, page


async def is_as_it_was(page: Page) -> None:
    await expect(page.locator("[data-banner]")).to_be_hidden()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("what I was typing")
    await expect(page.get_by_text("All is well.")).to_have_count(1)


@pytest.mark.full  # Its short form is in tests/crash/test_durable_chats.py.
async def test_open_tabs_go_on_by_themselves_after_the_server_was_killed(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    asked = model.asked("killed")  # By the tests before.
    store = f"sqlite:///{tmp_path / 'chats.sqlite3'}"
    with known_server(model, str(tmp_path), "--store", store) as server:
        port = server.address.rpartition(":")[2]
        async with staged(model, chromium, server.address) as stage:
            # Where it was cut off, the answer is given again from its beginning, whole.
            chat, page = await killed_in_mid_answer(stage, server, KnownAnswer(TOKENS))
            with known_server(model, str(tmp_path), "--store", store, "--port", port):
                await shown.until_words(page, WHOLE, 20)
                await expect(page.locator("footer.foot")).to_have_count(2)
                await is_as_it_was(page)
                assert await shown.words(page) == WHOLE
                await expect(page.get_by_text("so it is incomplete")).to_have_count(0)
                second = await stage.open(chat)
                await expect(second.locator("footer.foot")).to_have_count(2)
                assert await log(page) == await log(second)
                assert model.asked("killed") == asked + 2


@pytest.mark.full
async def test_an_open_tab_has_forms_that_the_new_server_takes(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'chats.sqlite3'}"
    with known_server(model, str(tmp_path), "--store", store) as server:
        port = server.address.rpartition(":")[2]
        async with staged(model, chromium, server.address) as stage:
            page = await stage.open(await stage.new_chat())
            await page.get_by_role("button", name="Setup").click()
            await page.locator("summary", has_text="Add a memory").click()
            await page.get_by_label("What to remember").fill("The report is due on Monday.")
            token = await page.locator("input[name=token]").first.input_value()
            server.process.kill()
            server.process.wait(timeout=10)
            with known_server(model, str(tmp_path), "--store", store, "--port", port):
                await page.wait_for_function(
                    "(token) => document.querySelector('input[name=token]').value !== token",
                    arg=token,
                )
                await page.get_by_role("button", name="Remember").click()
                await expect(page.get_by_text("Kept as a fact.")).to_be_visible()


@pytest.mark.full
async def test_where_no_runs_are_written_down_open_tabs_say_that_the_answer_was_cut_off(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    options = ("--store", f"sqlite:///{tmp_path / 'chats.sqlite3'}", "--backend", "none")
    with known_server(model, str(tmp_path), *options) as server:
        port = server.address.rpartition(":")[2]
        async with staged(model, chromium, server.address) as stage:
            again = KnownAnswer(["Now", " all", " of it."])
            chat, page = await killed_in_mid_answer(stage, server, again)
            with known_server(model, str(tmp_path), *options, "--port", port):
                await expect(page.get_by_text("so it is incomplete")).to_have_count(
                    1, timeout=20_000
                )
                await is_as_it_was(page)
                assert await shown.words(page) >= SETTLED
                second = await stage.open(chat)
                await expect(second.get_by_text("so it is incomplete")).to_have_count(1)
                assert await log(page) == await log(second)
                await page.get_by_role("button", name="Try again").click()
                for each in (page, second):
                    await expect(each.get_by_text("Now all of it.")).to_have_count(1)
                    await expect(each.get_by_text("so it is incomplete")).to_have_count(0)
