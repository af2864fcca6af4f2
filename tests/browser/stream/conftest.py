"""The real server, a model whose every token is known, and a browser that looks at them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.async_api import expect

from tests.support.browser import Complaints
from tests.support.model_server import Exchange, ModelServer, Reply
from tests.support.serving import Serving, serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

MODEL = "openai:known"

# Several browsers may share a small machine.
expect.set_options(timeout=10_000)


@dataclass
class Model:
    """The model's server. Each message that a test sends has replies of its own."""

    server: ModelServer
    replies: dict[str, list[Reply]] = field(default_factory=dict)

    async def reply(self, exchange: Exchange) -> None:
        await self.replies[exchange.request.prompt].pop(0)(exchange)

    def asked(self, prompt: str) -> int:
        """How many requests this message has led to."""
        return sum(request.prompt == prompt for request in self.server.requests)


@dataclass
class Stage:
    """A server that runs, the model behind it, and one browser context in front of it."""

    address: str
    model: Model
    context: BrowserContext
    complaints: Complaints
    client: httpx.AsyncClient

    async def new_chat(self) -> str:
        answer = await self.client.post("/api/chats", json={})
        return str(answer.json()["id"])

    async def send(self, chat: str, text: str, *replies: Reply) -> str:
        """Sends a message whose answers are these; returns the id of its run."""
        self.model.replies[text] = list(replies)
        answer = await self.client.post(f"/api/chats/{chat}/messages", json={"text": text})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def open(self, chat: str, *, at: str = "") -> Page:
        """A new tab that shows a chat; `at` is the address of a proxy to go through."""
        page = await self.context.new_page()
        await page.goto(f"{at or self.address}/chats/{chat}")
        return page


@pytest.fixture(scope="session")
async def model(anyio_backend: str) -> AsyncIterator[Model]:
    server = ModelServer()
    model = Model(server)
    server.default = model.reply
    async with server:
        yield model


def known_server(model: Model, data_dir: str, *arguments: str) -> AbstractContextManager[Serving]:
    """A server process whose model is the known one."""
    return serving(
        "--model",
        MODEL,
        "--data-dir",
        data_dir,
        "--no-open",
        *arguments,
        variables={"OPENAI_BASE_URL": model.server.base_url},
    )


@pytest.fixture(scope="session")
async def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Serving]:
    """One process for all tests here; each has chats of its own."""
    with known_server(model, str(tmp_path_factory.mktemp("data"))) as server:
        yield server


@pytest.fixture
async def stage(model: Model, server: Serving, chromium: Browser) -> AsyncIterator[Stage]:
    """Fails if a page complained, of a violated Content-Security-Policy for example."""
    context = await chromium.new_context()
    context.set_default_timeout(10_000)
    context.set_default_navigation_timeout(20_000)
    complaints = Complaints(context)
    async with httpx.AsyncClient(base_url=server.address, timeout=10) as client:
        yield Stage(server.address, model, context, complaints, client)
    await context.close()
    assert complaints.unexpected == []
