"""Signing in to MCP servers: the buttons of a server, and where the browser comes back to."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.harness.mcp.connection import Connection
from web.harness.mcp.sign_in import Returned, returned
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import HarnessError, NotFound
from web.ui.form_data import Fields
from web.ui.pages.forms import by_script, of_a_chat, stay
from web.ui.pages.pages import theme_of
from web.ui.pages.token_pages import came_by_https
from web.ui.services import UiServices

CALLBACK = "/oauth/callback"
OUTCOME = "/oauth/outcome"
METADATA = "/oauth/client-metadata.json"
OUTCOME_SECONDS = 20.0
"""How long the page that came back waits for the tokens."""
KEPT_SECONDS = 60.0
"""How long an outcome can be looked at, at an address that holds no code."""
MAX_OUTCOMES = 100
ASKED_SECONDS = 5.0
"""How long a page without script waits for the address to visit."""

_NEVER_KEPT = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
"""The address of the callback holds a code: nothing that the page loads may tell it."""


def sign_in_routes(services: UiServices) -> list[Route]:
    sign_in = _SignIn(services)
    return [
        Route(CALLBACK, sign_in.come_back),
        Route(f"{OUTCOME}/{{outcome_id}}", sign_in.outcome),
        Route(METADATA, sign_in.describe),
        *(
            Route(
                f"/chats/{{chat_id}}/servers/{{key}}/{path}",
                of_a_chat(services, handler),
                methods=["POST"],
            )
            for path, handler in (
                ("sign-in", sign_in.begin),
                ("sign-in/cancel", sign_in.cancel),
                ("sign-out", sign_in.sign_out),
            )
        ),
    ]


def client_metadata(url: str, redirect_uris: list[str]) -> Mapping[str, object]:
    """How this program describes itself to authorisation servers, at its public address `url`."""
    return {
        "client_id": url,
        "client_name": "harness-web",
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a page says of a sign-in. `until` is in seconds of the event loop's clock."""

    title: str
    words: str
    status: int
    until: float
    whose: HarnessIdentity


class _SignIn:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._servers = services.chats.servers
        self._outcomes: dict[str, _Outcome] = {}

    async def begin(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        connection = self._connection(chat, request)
        connection.begin_sign_in(_callback_of(request))
        if not by_script(request):
            await _asked(connection)
        return stay(request, chat)

    async def cancel(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        self._connection(chat, request).access.cancel()
        return stay(request, chat)

    async def sign_out(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        await self._connection(chat, request).access.sign_out()
        return stay(request, chat)

    async def come_back(self, request: Request) -> Response:
        """Takes what an authorisation server sends the browser back with, and says what came."""
        if request.method != "GET" or "prefetch" in request.headers.get("sec-purpose", ""):
            # Whoever only looks ahead must not use up the code.
            return Response(status_code=204, headers=_NEVER_KEPT)
        identity = self._services.identify(request)
        answer = returned(request.url.query)
        connection = self._servers.awaiting(identity, answer.state) if answer else None
        if answer is None or connection is None:
            return self._leave(
                identity,
                "Nobody waits for this sign-in",
                "It was cancelled, has taken too long, or its server was disconnected. "
                "Begin once more in the chat.",
                410,
            )
        return await self._finish(identity, connection, answer)

    async def _finish(
        self, whose: HarnessIdentity, connection: Connection, answer: Returned
    ) -> Response:
        name = connection.spec.name
        outcome = connection.access.finish(answer)
        if outcome is None:
            words = "This page was opened before. Nothing has changed by opening it again."
            return self._leave(whose, "This sign-in is over", words, 410)
        await asyncio.wait({outcome}, timeout=OUTCOME_SECONDS)
        if not outcome.done():
            words = "The chat shows what becomes of it. You can close this tab."
            return self._leave(whose, f"Signing in to {name}", words, 200)
        if outcome.result():
            return self._leave(whose, f"Not signed in to {name}", outcome.result(), 403)
        return self._leave(whose, f"Signed in to {name}", "You can close this tab.", 200)

    async def describe(self, request: Request) -> Response:
        """The description for those who publish it at an address of their own."""
        url = self._servers.client_metadata_url
        if not url:
            raise NotFound(
                "This server does not describe itself to authorisation servers.",
                hint="It does so with HARNESS_WEB_MCP_CLIENT_METADATA_URL.",
            )
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        hosts = ("127.0.0.1", "localhost", "[::1]")
        redirects = [f"{request.url.scheme}://{host}:{port}{CALLBACK}" for host in hosts]
        return JSONResponse(client_metadata(url, redirects))

    def _connection(self, chat: Chat, request: Request) -> Connection:
        return self._servers.of(chat).changeable(request.path_params["key"])

    async def outcome(self, request: Request) -> Response:
        """What came of a sign-in, for as long as it is kept."""
        identity = self._services.identify(request)
        kept = self._outcomes.get(request.path_params["outcome_id"])
        if (
            kept is None
            or kept.whose != identity
            or kept.until <= asyncio.get_running_loop().time()
        ):
            words = "The chat shows what has become of it. You can close this tab."
            return self._page(request, "This sign-in is over", words, 410)
        return self._page(request, kept.title, kept.words, kept.status)

    def _leave(self, whose: HarnessIdentity, title: str, words: str, status: int) -> Response:
        """Leads to the outcome, so that no code stays in the address of the tab."""
        now = asyncio.get_running_loop().time()
        self._outcomes = {id: each for id, each in self._outcomes.items() if each.until > now}
        while len(self._outcomes) >= MAX_OUTCOMES:
            del self._outcomes[next(iter(self._outcomes))]
        id = secrets.token_urlsafe(16)
        self._outcomes[id] = _Outcome(title, words, status, now + KEPT_SECONDS, whose)
        return RedirectResponse(f"{OUTCOME}/{id}", 303, headers=_NEVER_KEPT)

    def _page(self, request: Request, title: str, words: str, status: int) -> Response:
        template = self._services.templates.get_template("pages/sign_in.html")
        html = template.render(theme=theme_of(request), title=title, words=words)
        return HTMLResponse(html.encode(errors="replace"), status, headers=_NEVER_KEPT)


def _callback_of(request: Request) -> str:
    """The callback at the address by which the page is used; the middleware knows its host."""
    host = request.headers.get("host", "")
    if not host:
        raise HarnessError("The request names no host.", code="bad_host")
    scheme = "https" if came_by_https(request) else "http"
    return f"{scheme}://{host}{CALLBACK}"


async def _asked(connection: Connection) -> None:
    """Waits a little until there is an address to visit, or a reason why not."""
    changed = asyncio.Event()
    stop = connection.watch(lambda _: changed.set())
    try:
        async with asyncio.timeout(ASKED_SECONDS):
            while connection.access.begun and not connection.status.sign_in:
                changed.clear()
                await changed.wait()
    except TimeoutError:
        # The page then says that it is connecting.
        return
    finally:
        stop()
