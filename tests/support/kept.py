"""Servers one after another on the same store, and what a page of them shows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider
from tests.support.stores import SqlPlace

# What is another in each epoch, or on each look at a page.
_PASSING = re.compile(
    r'data-version="\d+"|data-epoch="[^"]*"|name="token" value="[^"]*"|'
    r'name="request_id" value="[^"]*"|content="[0-9a-f]+:\d+"|data-until="[^"]*"'
)


@dataclass
class Restarts:
    """Starts servers on one store and one folder of data."""

    place: SqlPlace
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def server(
        self, provider: ScriptedProvider | None = None, **limits: int
    ) -> AbstractAsyncContextManager[AppServer]:
        settings = {"store": self.place.address, **self.settings}
        return app_server(self.folder, provider, settings=settings, **limits)


async def page_of(server: AppServer, chat: str) -> str:
    """What the page of a chat shows, side bar included, without what each epoch has anew."""
    answer = await server.client.get(f"/chats/{chat}")
    assert answer.status_code == 200, answer.text
    return _PASSING.sub("", answer.text)


async def until(look: Callable[[], Any], seconds: float = 20) -> Any:
    """What an async look gives once it is true; each look is a request of its own."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):  # noqa: ASYNC110 (it asks a server)
            await asyncio.sleep(0.02)
    return found


async def shows(server: AppServer, chat: str, words: str) -> str:
    """The page of a chat, once it has these words."""

    async def look() -> str:
        page = await page_of(server, chat)
        return page if words in page else ""

    return str(await until(look))


async def at_rest(server: AppServer, chat: str, seconds: float = 20) -> dict[str, Any]:
    """What the API tells of a chat, once nothing is done in it and nothing asked."""

    async def look() -> dict[str, Any]:
        told = await server.chat(chat)
        at_work = told["active_run"] is not None or told["state"] in ("working", "asking")
        return {} if at_work else told

    return dict(await until(look, seconds))


async def many_chats(place: SqlPlace, count: int) -> None:
    """Puts this many chats into a store that a server has opened before, `chat 0` the oldest."""
    for start in range(0, count, 500):
        rows = ", ".join(
            f"('local', 'local', '{number:016x}', {number}.5, NULL, "
            f'\'{{"model": "demo:demo", "title": "chat {number}", "created_at": 1.0}}\')'
            for number in range(start, min(start + 500, count))
        )
        await place.run(
            "INSERT INTO harness_records (tenant_id, user_id, session_id, place, deleted_at, body) "
            f"VALUES {rows}"
        )
