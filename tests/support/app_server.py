"""The whole application on a port, in the event loop of the test, with a model the test plays.

async with app_server(tmp_path, ScriptedProvider(says("Hello"))) as server:
    chat = await server.new_chat()
    run_id = await server.send(chat, "Hi")
    events = await server.events(run_id)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.types import ASGIApp

from tests.support.scripted_provider import ScriptedProvider, says
from web.app import create_app
from web.commands.server import listen
from web.harness.values.config import ModelName
from web.server_limits import ServerLimits
from web.settings import Settings

WAIT_SECONDS = 20.0
"""No wait in this file is longer, of an `AppServer` without `seconds` of its own."""

MODELS = (ModelName("openai", "one"), ModelName("openai", "two"))


class StreamEvent(NamedTuple):
    """One event as it came over the wire; `id` is None where there was none."""

    id: int | None
    type: str
    data: Any


@dataclass(frozen=True, slots=True)
class AppServer:
    """A server that answers, and a client that speaks to it. A path starts with a slash."""

    address: str
    client: httpx.AsyncClient

    @property
    def seconds(self) -> float:
        """For one wait."""
        return WAIT_SECONDS

    async def new_chat(self, **fields: Any) -> str:
        answer = await self.client.post("/api/chats", json=fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def chat(self, chat_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/chats/{chat_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def send(self, chat_id: str, text: str, **fields: Any) -> str:
        """Sends a message and returns the id of its run."""
        answer = await self.client.post(
            f"/api/chats/{chat_id}/messages", json={"text": text, **fields}
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def status(self, run_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def events(self, run_id: str, after: int = 0) -> list[StreamEvent]:
        """All events after a cursor until the stream ends."""
        async with asyncio.timeout(self.seconds), self.stream(run_id, after) as events:
            return [event async for event in events]

    async def wait_for(self, run_id: str, type: str) -> StreamEvent:
        """The first event of a type; reads no further."""
        async with asyncio.timeout(self.seconds), self.stream(run_id) as events:
            async for event in events:
                if event.type == type:
                    return event
        raise AssertionError(f"the run ended without {type}")

    @asynccontextmanager
    async def stream(
        self, run_id: str, after: int = 0, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        path = f"/api/runs/{run_id}/events?after={after}"
        async with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield _parsed(answer)


@asynccontextmanager
async def app_server(
    data_dir: Path,
    provider: ScriptedProvider | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    **limits: int,
) -> AsyncIterator[AppServer]:
    """The application with `MODELS`, both played by `provider`, other settings and limits."""
    played = provider or ScriptedProvider(says("ok"))
    others = {"model": MODELS, "limits": ServerLimits(**limits), **(settings or {})}
    app = create_app(Settings(data_dir=data_dir, **others), providers=lambda name: played)
    async with served(app) as address, plain_client(address) as client:
        yield AppServer(address, client)


def plain_client(address: str) -> httpx.AsyncClient:
    """A client for http alone: to read the certificates of the machine takes a while."""
    return httpx.AsyncClient(base_url=address, timeout=WAIT_SECONDS, verify=False)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """Any application on a free port; its address without a slash at the end."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1
    )
    server = _QuietServer(config)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve([listener]))
        async with asyncio.timeout(WAIT_SECONDS):
            await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await serving


class _QuietServer(uvicorn.Server):
    """Says when it is ready and leaves the signals of the process alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._stopped = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def stop(self) -> None:
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        """Ends at once when it is to; the usual one looks ten times a second."""
        await self.on_tick(0)
        await self._stopped.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _parsed(answer: httpx.Response) -> AsyncIterator[StreamEvent]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            assert name in ("id", "event", "data"), line
            assert name not in fields, f"{name} twice in one event"
            fields[name] = value
        elif fields:
            number = int(fields["id"]) if "id" in fields else None
            yield StreamEvent(number, fields["event"], json.loads(fields["data"]))
            fields = {}


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of an error, which must have the shape that every error has."""
    told = answer.json()
    assert set(told) == {"code", "message", "hint"}
    assert all(isinstance(value, str) for value in told.values())
    assert told["message"]
    return answer.status_code, told["code"]


def text_of(events: Iterable[StreamEvent]) -> str:
    """The text that these events add up to."""
    return "".join(event.data["text"] for event in events if event.type == "text_delta")


def numbers(events: list[StreamEvent]) -> list[int]:
    """Those of the events that have one."""
    return [event.id for event in events if event.id is not None]
