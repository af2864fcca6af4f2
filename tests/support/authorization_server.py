"""An authorisation server, and an MCP server that wants its tokens: two names of one port.

async with realm() as made:
    made.url            # of the MCP server
    made.refuse_refresh = True    # faults can be switched on and off at any time

Its authorisation page asks nobody: it sends the browser back at once.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.mcp_sdk import build_server, listening
from web.harness.mcp.trust import trusted

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(slots=True)
class Token:
    """What an access or refresh token stands for."""

    client: str
    scope: str
    runs_out: float


@dataclass(slots=True)
class Realm:
    """Both servers: their faults, which may be changed while they run, and what they saw.

    `needed` are the scopes that tools need beside `scope`. With `clients` only those may sign in,
    each with its secret; otherwise programs register themselves.
    """

    scope: str = "mcp"
    needed: dict[str, str] = field(default_factory=dict)
    clients: dict[str, str] = field(default_factory=dict)
    token_seconds: float = 3600.0
    metadata: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    described: Response | None = None
    """What the MCP server says of itself, for any of its addresses, in the place of the truth."""
    page: dict[str, str] = field(default_factory=dict)
    """Parameters of the callback that are not as they should be; '' leaves one out."""
    registers: bool = True
    refuse_refresh: bool = False
    gives: str = ""
    """The scope of new tokens, whatever was asked for; '' for that."""
    answer: dict[str, Any] = field(default_factory=dict)
    """What an answer with tokens says in the place of the right fields."""
    token_status: int = 0
    """The status with which the token endpoint fails; 0 for not at all."""
    renewing: Callable[[], Awaitable[None]] | None = None
    """Waited for before a renewal is answered, whose token is worthless by then."""
    refused: int = 0
    """Requests that the MCP server has answered with 401."""
    url: str = ""
    issuer: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The parameters of each visit to the authorisation page."""
    granted: list[dict[str, str]] = field(default_factory=list)
    """The fields of each request for a token."""
    registered: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    """Every code, token, state and client secret that was used here."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, Token] = field(default_factory=dict)
    refresh: dict[str, Token] = field(default_factory=dict)

    def expire(self) -> None:
        """All access tokens are worthless from now on; those to renew them are not."""
        self.access.clear()

    def revoke(self) -> None:
        """Nothing that was given is worth anything any more."""
        self.access.clear()
        self.refresh.clear()

    # The authorisation server.

    def authorisation_app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self._describe),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorise),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def _describe(self, request: Request) -> Response:
        described = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }
        return JSONResponse({key: value for key, value in described.items() if value is not None})

    async def _register(self, request: Request) -> Response:
        if not self.registers or self.clients:
            return JSONResponse({"error": "access_denied"}, 403)
        client_id, secret = f"client-{len(self.registered)}", self._new("client")
        given = await request.json()
        self.registered[client_id] = given
        made = {**given, "client_id": client_id, "client_secret": secret}
        return JSONResponse({**made, "token_endpoint_auth_method": "client_secret_post"}, 201)

    async def _authorise(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.asked.append(asked)
        self.secrets.append(asked["state"])
        known = self.registered.get(asked["client_id"])
        if known is not None and asked["redirect_uri"] not in known["redirect_uris"]:
            return Response("another redirect_uri was registered", 400)
        if known is None and not self._is_known(asked["client_id"]):
            return Response("unknown client", 400)
        if asked["code_challenge_method"] != "S256" or asked["resource"] != self.url:
            return Response("no PKCE, or another resource", 400)
        code = self._new("code")
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer, **self.page}
        kept = {name: value for name, value in back.items() if value}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(kept)}", 302)

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            fields = {name: str(value) for name, value in form.items()}
        self.granted.append({**fields, "authorization": request.headers.get("authorization", "")})
        if self.token_status:
            return JSONResponse({"error": "invalid_grant", "echo": fields}, self.token_status)
        if fields["grant_type"] == "refresh_token":
            held = self.refresh.pop(fields["refresh_token"], None)
            if held is None or self.refuse_refresh:
                return JSONResponse({"error": "invalid_grant"}, 400)
            if self.renewing is not None:
                await self.renewing()
            return JSONResponse(self._pair(held.client, held.scope))
        asked = self.codes.pop(fields["code"], None)
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or asked["code_challenge"] != proof
            or not self._has_secret(request, fields)
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse(self._pair(asked["client_id"], asked.get("scope", "")))

    def _is_known(self, client_id: str) -> bool:
        return client_id in self.clients or client_id.startswith("https://")

    def _has_secret(self, request: Request, fields: dict[str, str]) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not self.clients:
            return True
        pair = base64.b64decode(given).decode() if scheme == "Basic" else ""
        return pair in {f"{name}:{secret}" for name, secret in self.clients.items()}

    def _pair(self, client: str, scope: str) -> dict[str, Any]:
        access, refresh = self._new("access"), self._new("refresh")
        scope = self.gives or scope
        self.access[access] = Token(client, scope, time.monotonic() + self.token_seconds)
        self.refresh[refresh] = Token(client, scope, 0.0)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": int(self.token_seconds),
            "refresh_token": refresh,
            **self.answer,
        }

    def _new(self, kind: str) -> str:
        value = f"{kind}-{secrets.token_urlsafe(16)}"
        self.secrets.append(value)
        return value

    # The MCP server.

    def app(self, inner: ASGIApp) -> ASGIApp:
        """Both: which one is meant shows the name that it was asked by."""
        authorisation = self.authorisation_app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            request = Request(scope)
            if request.url.hostname == "localhost":
                await authorisation(scope, receive, send)
            else:
                await (self._refusal(request) or inner)(scope, receive, send)

        return app

    def _refusal(self, request: Request) -> Response | None:
        path = urlsplit(self.url).path
        if self.described is not None and request.url.path.startswith(WELL_KNOWN):
            return self.described
        if request.url.path == WELL_KNOWN + path:
            described = {
                "resource": self.url,
                "authorization_servers": [self.issuer],
                "scopes_supported": [self.scope],
                **self.resource,
            }
            return JSONResponse(described)
        told = f'resource_metadata="{self.url.removesuffix(path)}{WELL_KNOWN}{path}"'
        held = self.access.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if held is None or held.runs_out < time.monotonic():
            self.refused += 1
            return Response(status_code=401, headers={"www-authenticate": f"Bearer {told}"})
        needed = self.needed.get(request.headers.get("mcp-name", ""), self.scope)
        if needed in held.scope.split():
            return None
        challenge = f'Bearer error="insufficient_scope", scope="{needed}", {told}'
        return Response(status_code=403, headers={"www-authenticate": challenge})


@asynccontextmanager
async def realm(*, sse: bool = False, **fields: Any) -> AsyncIterator[Realm]:
    """Both servers, for as long as the block lasts; `sse`: the MCP server speaks HTTP+SSE."""
    made, server = Realm(**fields), build_server()
    app = server.sse_app() if sse else server.streamable_http_app()
    async with listening(made.app(app)) as port:
        made.issuer = f"http://localhost:{port}"
        made.url = f"http://127.0.0.1:{port}/{'sse' if sse else 'mcp'}"
        yield made


async def sent_back(address: str) -> str:
    """Visits the authorisation page as a browser does; returns where that sends it back to."""
    async with httpx.AsyncClient(verify=trusted()) as client:
        answer = await client.get(address)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]
