"""Has the chats that a request is about in memory before a route looks for them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from web.harness.values.errors import HarnessError
from web.ui.services import UiServices

CHAT_ID_CHARS = 16
"""Of a chat whose run is asked for: the id of a run begins with it."""

MAX_STREAM_CHATS = 256

_CHAT = re.compile(r"(?:/api)?/chats/([^/]+)(?:/.*)?")
_RUN = re.compile(r"/api/runs/([^/]+)(?:/.*)?")
_STREAMS = ("/stream", "/changes")
_LEFT_ALONE = ("/static/", "/api/health", "/api/openapi.json")


class LoadedChats:
    """Loads what an address names. Chats in memory cost nothing here."""

    def __init__(self, app: ASGIApp, services: UiServices) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and self._services.chats.kept is not None
            and not scope["path"].startswith(_LEFT_ALONE)
        ):
            await self._load(scope)
        await self._app(scope, receive, send)

    async def _load(self, scope: Scope) -> None:
        try:
            identity = self._services.identify(HTTPConnection(scope))
        except HarnessError:
            return  # The route refuses a stranger, if it has to.
        chats = self._services.chats
        if scope["path"] in _STREAMS:
            # One chat that cannot be read ends no stream of others: it is told to be gone.
            await chats.prepare(identity)
            for chat_id in _asked(scope)[:MAX_STREAM_CHATS]:
                try:
                    await chats.load(identity, chat_id)
                except HarnessError as error:
                    chats.could_not_load(chat_id, error)
            return
        await chats.prepare(identity, _named(scope["path"]))


def _named(path: str) -> list[str]:
    if (chat := _CHAT.fullmatch(path)) is not None:
        return [chat[1]]
    if (run := _RUN.fullmatch(path)) is not None:
        return [run[1][:CHAT_ID_CHARS]]
    return []


def _asked(scope: Scope) -> list[str]:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    names = ",".join(query.get("channels", [])).split(",")
    return [name for name in names if name and name != "chats"]
