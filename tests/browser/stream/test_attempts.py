"""A model that breaks in mid-answer: the attempt is dropped with a word and starts anew."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.browser.stream import shown
from tests.browser.stream.conftest import MODEL, Model, Stage
from tests.browser.stream.known import KnownAnswer, mix, pieces
from tests.support.app_server import served
from tests.support.browser import Complaints
from tests.support.model_server import Reply, Valve, stall_after, status
from tests.support.model_wire import token_event
from web.app import create_app
from web.harness.providers import make_provider
from web.harness.values.config import ModelName
from web.harness.values.model import ModelChunk, ModelRequest
from web.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

TEXT = mix(1_500)


async def _ended_well(page: Page, dropped: int) -> None:
    """The whole text once, and a quiet line for each attempt that had begun and was dropped."""
    await shown.until_done(page)
    await shown.is_reference(page, TEXT)
    await shown.is_tidy(page)
    assert await shown.kinds(page) == ["mine", *["notice"] * dropped, "answer", "foot"]
    if dropped:
        await expect(page.locator(".notice").first).to_contain_text("dropped")


async def test_an_answer_whose_connection_broke_starts_anew_and_is_never_doubled(
    stage: Stage,
) -> None:
    tokens = pieces(TEXT, seed=7)
    valve = Valve()
    broken = KnownAnswer(tokens, valve=valve)
    chat = await stage.new_chat()
    await stage.send(chat, "broken once", broken, KnownAnswer(tokens))
    page = await stage.open(chat)
    await valve.allow(80)
    await shown.until_words(page, shown.settled(tokens[:80]))
    await valve.cut()
    await _ended_well(page, dropped=1)
    await page.reload()
    await _ended_well(page, dropped=1)


@pytest.mark.full
async def test_an_overloaded_model_is_asked_again(stage: Stage) -> None:
    overloaded = status(529, {"error": {"message": "Overloaded", "type": "overloaded_error"}})
    chat = await stage.new_chat()
    page = await stage.open(chat)
    await stage.send(chat, "overloaded once", overloaded, KnownAnswer(pieces(TEXT, seed=9)))
    await shown.until_done(page)
    await shown.is_reference(page, TEXT)
    assert stage.model.asked("overloaded once") == 2


async def test_a_failed_run_says_what_to_do_and_can_be_tried_again(stage: Stage) -> None:
    refused = status(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})
    chat = await stage.new_chat()
    page = await stage.open(chat)
    await stage.send(chat, "no key", refused, KnownAnswer(pieces(TEXT, seed=10)))
    failure = page.locator(".failure")
    await expect(failure).to_contain_text("OPENAI_API_KEY")
    await expect(page.locator(".status")).to_have_attribute("data-state", "failed")
    await page.reload()
    await failure.get_by_role("button", name="Try again").click()
    await expect(failure).to_have_count(0)
    await shown.until_done(page)
    await shown.is_reference(page, TEXT)
    assert await shown.kinds(page) == ["mine", "answer", "foot"]
    assert stage.model.asked("no key") == 2


class Impatient:
    """The real provider, which takes a silence of a moment for a stall."""

    def __init__(self, base_url: str, stall_seconds: float) -> None:
        self._real = make_provider("openai", base_url=base_url)
        self._stall_seconds = stall_seconds

    def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        return self._real.stream(replace(request, stall_seconds=self._stall_seconds))

    async def aclose(self) -> None:
        await self._real.aclose()


@pytest.mark.full
async def test_a_model_that_falls_silent_is_asked_again(
    model: Model, chromium: Browser, tmp_path: Path
) -> None:
    silent: Reply = stall_after(b"".join(map(token_event, pieces(TEXT, seed=11)[:60])))
    provider = Impatient(model.server.base_url, stall_seconds=0.5)
    settings = Settings(data_dir=tmp_path, model=(ModelName.parse(MODEL),))
    app = create_app(settings, providers=lambda name: provider)
    context = await chromium.new_context()
    context.set_default_timeout(10_000)
    async with served(app) as address, httpx.AsyncClient(base_url=address) as client:
        stage = Stage(address, model, context, Complaints(context), client)
        chat = await stage.new_chat()
        page = await stage.open(chat)
        await stage.send(chat, "silent once", silent, KnownAnswer(pieces(TEXT, seed=11)))
        await _ended_well(page, dropped=1)
        await context.close()
    await provider.aclose()
