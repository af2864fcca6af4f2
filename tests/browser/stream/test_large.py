"""Answers of 200 KB: the page ends as the reference, and neither it nor the server stumbles."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.browser.stream import shown
from tests.browser.stream.conftest import MODEL, Stage
from tests.browser.stream.known import SHAPES, KnownAnswer, pieces
from tests.support.app_server import AppServer, served
from web.app import create_app
from web.commands.server import COLLECT_AFTER
from web.harness.values.config import ModelName
from web.harness.values.model import ModelChunk, ModelDone, ModelRequest, TextChunk
from web.settings import Settings

pytestmark = pytest.mark.anyio

LARGE = 200_000
BLOCKED_SECONDS = 0.02
"""The longest that the server's event loop may be kept from everything else."""

_LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.longTasks.push(Math.round(each.duration));
}).observe({ type: "longtask" });
"""


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        pytest.param("mix", 20_000, id="mix-small"),
        *(pytest.param(shape, LARGE, id=shape, marks=pytest.mark.full) for shape in SHAPES),
    ],
)
async def test_a_large_answer_ends_as_the_reference(
    stage: Stage, shape: str, size: int, record_property: Callable[[str, object], None]
) -> None:
    answer = KnownAnswer(pieces(SHAPES[shape](size), seed=size), batch=20)
    chat = await stage.new_chat()
    await stage.context.add_init_script(_LONG_TASKS)
    page = await stage.open(chat)
    await page.evaluate("() => (window.longTasks.length = 0)")
    began = time.monotonic()
    await stage.send(chat, f"large {shape} {size}", answer)
    await shown.until_done(page, seconds=120)
    tasks: list[int] = await page.evaluate("() => window.longTasks")
    record_property("seconds", round(time.monotonic() - began, 1))
    record_property("long tasks in ms", sorted(tasks)[-5:])
    await shown.is_reference(page, answer.text)
    await shown.is_tidy(page)
    await page.reload()
    await shown.is_reference(page, answer.text)


class Fast:
    """A model that writes one text after the other, as fast as it can."""

    def __init__(self, *texts: str) -> None:
        self._texts = [pieces(text, seed=1) for text in texts]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        tokens = self._texts.pop(0)
        for first in range(0, len(tokens), 20):
            await asyncio.sleep(0)
            yield [TextChunk(token) for token in tokens[first : first + 20]]
        yield [ModelDone("end_turn")]

    async def aclose(self) -> None:
        pass


class Heartbeat:
    """Measures how long the event loop computes without letting anybody else have it.

    In seconds of this thread's CPU: that another process had the core is nobody's fault here.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - before)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        pytest.param("mix", 20_000, id="mix-small"),
        *(pytest.param(shape, LARGE, id=shape, marks=pytest.mark.full) for shape in SHAPES),
    ],
)
async def test_no_frame_of_a_large_answer_blocks_the_event_loop(
    tmp_path: Path, shape: str, size: int, record_property: Callable[[str, object], None]
) -> None:
    text = SHAPES[shape](size)
    longest: list[float] = []
    for _ in range(3):
        longest.append(await _longest_block(tmp_path, text))
        if longest[-1] <= BLOCKED_SECONDS:
            break
    record_property("longest block in ms", [round(each * 1000, 1) for each in longest])
    assert min(longest) <= BLOCKED_SECONDS, longest


async def _longest_block(data_dir: Path, text: str) -> float:
    """Streams the text to a reader of the page's stream; the longest block, in seconds."""
    heartbeat = Heartbeat()
    model = Fast(SHAPES["mix"](4_000), text)
    async with _application(data_dir, model) as server:
        chat = await server.new_chat()
        address = f"/stream?channels={chat},chats&after=0:0"
        # What is loaded at first use is start-up.
        other = await server.new_chat()
        await server.events(await server.send(other, "warm up"))
        await server.client.get(f"/chats/{other}")
        with _no_old_garbage():
            async with asyncio.timeout(60), server.client.stream("GET", address) as stream:
                arrived = stream.aiter_raw()
                await anext(arrived)
                beating = asyncio.create_task(heartbeat.beat())
                await server.send(chat, "go")
                end = b""
                async for piece in arrived:
                    end = end[-100:] + piece
                    if b'class=\\"foot\\"' in end:
                        break
                beating.cancel()
    return heartbeat.longest


@asynccontextmanager
async def _application(data_dir: Path, provider: Fast) -> AsyncIterator[AppServer]:
    settings = Settings(data_dir=data_dir, model=(ModelName.parse(MODEL),))
    app = create_app(settings, providers=lambda name: provider)
    async with served(app) as address, httpx.AsyncClient(base_url=address, timeout=60) as client:
        yield AppServer(address, client)


@contextmanager
def _no_old_garbage() -> Iterator[None]:
    """As the server process does it: a collection does not walk what was there before."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
