"""The API of the server, as the demo asks it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import httpx

from web.demos.crash.child import CannotShow
from web.demos.crash.seen import Shown
from web.demos.crash.story import PROMPT, TITLE

QUIET_SECONDS = 60.0
"""A stream says every 15 seconds that it is still there."""


class Api:
    """Raises httpx.TransportError where the server ends meanwhile."""

    def __init__(self, address: str) -> None:
        # It is at this machine: no proxy, and no certificates, which take a while to be read.
        self._client = httpx.AsyncClient(
            base_url=address,
            timeout=QUIET_SECONDS,
            trust_env=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    async def send(self) -> tuple[str, str]:
        """A new chat and its message: the ids of the chat and of its run."""
        chat = await self._post("/api/chats", title=TITLE)
        sent = await self._post(f"/api/chats/{chat['id']}/messages", text=PROMPT)
        return str(chat["id"]), str(sent["run_id"])

    async def events(self, run_id: str, after: int) -> AsyncGenerator[Shown, None]:
        """The events of a run after one, as they come, to its result."""
        path = f"/api/runs/{run_id}/events"
        async with self._client.stream("GET", path, params={"after": after}) as answer:
            if answer.is_error:
                await answer.aread()
                raise _refused(answer)
            fields: dict[str, str] = {}
            async for line in answer.aiter_lines():
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    number = int(fields.get("id", 0))
                    yield Shown(number, fields["event"], json.loads(fields["data"]))
                    fields = {}

    async def resolve(self, run_id: str, key: str, how: str, text: str) -> bool:
        """Answers what is asked about a call; False where it is answered already."""
        answer = await self._client.post(
            f"/api/runs/{run_id}/recoveries/{key}", json={"how": how, "text": text}
        )
        if answer.is_error and answer.json()["code"] != "decision_refused":
            raise _refused(answer)
        return answer.is_success

    async def messages(self, chat_id: str) -> list[dict[str, Any]]:
        answer = await self._client.get(f"/api/chats/{chat_id}")
        if answer.is_error:
            raise _refused(answer)
        return list(answer.json()["messages"])

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _post(self, path: str, **fields: Any) -> dict[str, Any]:
        answer = await self._client.post(path, json=fields)
        if answer.is_error:
            raise _refused(answer)
        return dict(answer.json())


def _refused(answer: httpx.Response) -> CannotShow:
    told = answer.json()
    return CannotShow(f"The server said: {told['message']}", hint=told["hint"])
