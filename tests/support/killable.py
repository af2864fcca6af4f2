"""Server processes of chats, and workers, that are killed in the middle of an answer."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.app_server import AppServer, plain_client
from tests.support.environment import CHECKOUT, environment
from tests.support.kept import at_rest
from tests.support.model_server import Exchange, ModelServer, Reply, sse, stall_after
from tests.support.model_wire import chat_ending, chat_event, chat_events
from tests.support.serving import Serving, serving
from tests.support.stores import SqlPlace, new_place
from tests.support.temporal import TemporalServer, new_queue, temporal_server

SECONDS = 40.0
"""For one wait: a killed worker of Temporal is known to be dead after ten."""


@dataclass(slots=True)
class Servers:
    """Starts server processes on one store, one model and one folder.

    With `works` a worker is started beside each server, and killed with it.
    """

    kept: tuple[str, str]
    folder: Path
    model: ModelServer
    works: bool = False
    _workers: list[subprocess.Popen[str]] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def server(self, *more: str) -> AsyncIterator[Killable]:
        variables = {**self._keys, "HARNESS_WEB_MODEL": "openai:one"}
        options = (*self.kept, "--no-open", "--data-dir", str(self.folder))
        with contextlib.ExitStack() as stack:
            if self.works:
                stack.enter_context(self.worker(*_of_worker(more)))
            process = stack.enter_context(serving(*options, *more, variables=variables))
            async with plain_client(process.address) as client:
                client.timeout = httpx.Timeout(SECONDS)
                yield Killable(process.address, client, process, tuple(self._workers))

    @contextlib.contextmanager
    def worker(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """One that is at work."""
        variables = {**self._keys, "HARNESS_WEB_MODEL": "openai:one"}
        options = (*self.kept, "--data-dir", str(self.folder), *more)
        with subprocess.Popen(
            [sys.executable, "-m", "web", "worker", *options],
            cwd=CHECKOUT,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            self._workers.append(process)
            try:
                assert process.stdout is not None
                assert process.stdout.readline().startswith("Working on")
                yield process
            finally:
                self._workers.remove(process)
                process.kill()

    @property
    def _keys(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": self.model.base_url}


def _of_worker(options: tuple[str, ...]) -> tuple[str, ...]:
    """Those options of a server that a worker has too."""
    place = options.index("--mcp-config") if "--mcp-config" in options else len(options)
    return options[place : place + 2]


@dataclass(frozen=True, slots=True)
class Killable(AppServer):
    serving: Serving
    workers: tuple[subprocess.Popen[str], ...] = ()

    @property
    def seconds(self) -> float:
        return SECONDS

    def kill(self) -> None:
        """SIGKILL: nothing is written, said or closed any more."""
        for process in (*self.workers, self.serving.process):
            process.kill()
            process.wait(timeout=10)

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


@contextlib.asynccontextmanager
async def killable_servers(
    kind: str, folder: Path, temporal: TemporalServer | None = None
) -> AsyncIterator[Servers]:
    """`kind` is a store, `temporal`, or `temporal-worker` with a worker beside each server."""
    by_temporal = kind.startswith("temporal")
    place = await new_place("sqlite" if by_temporal else kind, folder)
    assert isinstance(place, SqlPlace)
    kept = ("--store", place.address)
    if by_temporal:
        address = (temporal or temporal_server()).address
        told = f"events={quote(place.address, safe='')}&queue={new_queue()}"
        kept = ("--backend", f"temporal://{address}/default?{told}")
    async with ModelServer() as model:
        yield Servers(kept, folder, model, works=kind == "temporal-worker")
    await place.aclose()


def half(text: str) -> Reply:
    """Says this, and nothing more for as long as somebody listens."""
    said = stall_after(chat_event({"content": text}))

    async def reply(exchange: Exchange) -> None:
        # A server may take longer to start than that.
        with contextlib.suppress(TimeoutError):
            await said(exchange)

    return reply


def says(text: str) -> Reply:
    return sse(chat_events(text))


def by_prompt(answers: dict[str, str]) -> Reply:
    async def reply(exchange: Exchange) -> None:
        await says(answers[exchange.request.prompt])(exchange)

    return reply


def calls(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return sse(chat_event({"tool_calls": [call]}) + b"".join(chat_ending("tool_calls")))


async def rest(server: AppServer, chat: str) -> list[str]:
    """The texts of a chat's messages once it is at rest."""
    told = await at_rest(server, chat, 30)
    blocks = [block for message in told["messages"] for block in message["content"]]
    return [block["text"] for block in blocks if block["type"] == "text"]
