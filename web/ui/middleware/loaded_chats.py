"""Has the chats that a request is about in memory before a route looks for them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from web.harness.sessions.identity import HarnessIdentity
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
        chats = self._services.chats
        if (
            scope["type"] != "http"
            or chats.kept is None
            or scope["path"].startswith(_LEFT_ALONE)
            or (identity := self._identity(scope)) is None
        ):
            await self._app(scope, receive, send)
            return
        names = _named(scope)
        # What is done with them holds on to them: they stay in memory until it has ended.
        with chats.using(identity, names):
            await self._load(scope, identity, names)
            await self._app(scope, receive, send)

    def _identity(self, scope: Scope) -> HarnessIdentity | None:
        try:
            return self._services.identify(HTTPConnection(scope))
        except HarnessError:
            return None  # The route refuses a stranger, if it has to.

    async def _load(self, scope: Scope, identity: HarnessIdentity, names: list[str]) -> None:
        chats = self._services.chats
        if scope["path"] not in _STREAMS:
            await chats.prepare(identity, names)
            if (run := _RUN.fullmatch(scope["path"])) is not None:
                await chats.hear_of(identity, names[0], run[1])
            return
        # One chat that cannot be read ends no stream of others: it is told to be gone.
        await chats.prepare(identity)
        for chat_id in names:
            try:
                await chats.load(identity, chat_id)
            except HarnessError as error:
                chats.could_not_load(chat_id, error)


def _named(scope: Scope) -> list[str]:
    path = scope["path"]
    if path in _STREAMS:
        return _asked(scope)[:MAX_STREAM_CHATS]
    if (chat := _CHAT.fullmatch(path)) is not None:
        return [chat[1]]
    if (run := _RUN.fullmatch(path)) is not None:
        return [run[1][:CHAT_ID_CHARS]]
    return []


def _asked(scope: Scope) -> list[str]:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    names = ",".join(query.get("channels", [])).split(",")
    return [name for name in names if name and name != "chats"]
