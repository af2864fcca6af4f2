"""Requests with the token of a signed-in person: renewed, and asked for as the server wants it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

import anyio
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from web.harness.mcp.grants import is_readable
from web.harness.mcp.guard import Guard
from web.harness.mcp.oauth_flow import Flow, wanting
from web.harness.mcp.sign_in import SignIn, SignInFailed
from web.harness.mcp.tokens import Grant
from web.harness.values.errors import ConfigurationError

MAX_STEP_UPS = 2
"""How often one session may ask for more rights."""
RENEW_SECONDS = 10.0

_T = TypeVar("_T")


class Authorised(httpx2.Auth):
    """The token of one session. Without a token requests go out as they are.

    A refusal leads to a sign-in only where `access` is attended from the beginning of the session;
    otherwise whoever sent the request gets it. Raises SignInFailed; a sign-in that has failed is
    not tried again in the same session.
    """

    def __init__(self, access: SignIn, guard: Guard | None = None) -> None:
        self._access = access
        self._store = access.setup.tokens
        self._key = (access.setup.owner, access.server)
        self._guard = guard or Guard(access.server)
        self._lock = anyio.Lock()
        self._grant: Grant | None = None
        self._loaded = False
        self._failed: SignInFailed | None = None
        self._step_ups = 0
        # A session that is being closed must not take up the sign-in meant for the next one.
        self._attempt = access.attempt

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Sends the request, and once more after each renewal or sign-in."""
        await self._load()
        if self._attended and self._access.wanted:
            await self._ask(request, wanting(self._access.wanted, request), self._token)
        elif self._has_run_out():
            await self._renewed(request, self._token)
        sent = self._authorise(request)
        response = yield request
        if response.status_code == 401 and sent and await self._renewed(request, sent):
            sent = self._authorise(request)
            response = yield request
        asked = False
        while self._attended and self._may_ask(response, asked):
            asked = asked or response.status_code == 401
            await self._ask(request, response, sent)
            sent = self._authorise(request)
            response = yield request
        # A program that takes the person's place has been asked as often as it may be.
        if needs_more_rights(response) and self._access.setup.visit is None:
            self._access.wanted = response.headers["www-authenticate"]

    # The token in use.

    @property
    def _attended(self) -> bool:
        return self._access.attended and self._access.attempt == self._attempt

    @property
    def _token(self) -> str:
        tokens = self._grant.tokens if self._grant is not None else None
        return str(tokens["access_token"]) if tokens else ""

    @property
    def _is_renewable(self) -> bool:
        tokens = self._grant.tokens if self._grant is not None else None
        return bool(tokens and tokens.get("refresh_token"))

    def _has_run_out(self) -> bool:
        runs_out = self._grant.expires_at if self._grant is not None else None
        return self._is_renewable and runs_out is not None and time.time() >= runs_out

    def _authorise(self, request: httpx2.Request) -> str:
        request.headers.pop("authorization", None)
        if self._token:
            request.headers["authorization"] = f"Bearer {self._token}"
        return self._token

    async def _load(self) -> None:
        if not self._loaded:
            async with self._lock:
                await self._reload()

    async def _reload(self) -> None:
        grant = await _in_words(self._store.find(*self._key))
        self._take(grant if grant is not None and is_readable(grant) else None)
        self._loaded = True

    async def _keep(self, grant: Grant) -> None:
        await _in_words(self._store.keep(*self._key, grant))
        self._take(grant)

    def _take(self, grant: Grant | None) -> None:
        self._grant = grant
        self._access.signed_in = bool(self._token)
        if grant is not None:
            tokens = grant.tokens or {}
            self._access.hide(tokens.get("access_token"), tokens.get("refresh_token"))
            self._access.hide(grant.client.get("client_secret"))

    # Another token.

    async def _renewed(self, request: httpx2.Request, sent: str) -> bool:
        """Whether there is another token than the one that was sent, without asking a person."""
        async with self._lock, self._store.renewing(*self._key):
            # Another connection may have renewed it, which makes the old one worthless.
            await self._reload()
            if self._token != sent:
                return bool(self._token)
            if not self._is_renewable:
                return False
            flow = Flow(self._access, self._guard, self._grant, self._keep)
            try:
                # Cut off in the middle, it would leave this program with a token that was used.
                with anyio.fail_after(RENEW_SECONDS, shield=True):
                    if await flow.renew(request):
                        return True
                    await _in_words(self._store.forget_tokens(*self._key))
            except TimeoutError:
                raise SignInFailed("The sign-in could not be renewed in time.", "failed") from None
            await self._reload()
            return False

    def _may_ask(self, response: httpx2.Response, asked: bool) -> bool:
        if needs_more_rights(response):
            self._step_ups += 1
            return self._step_ups <= MAX_STEP_UPS
        return response.status_code == 401 and not asked

    async def _ask(self, request: httpx2.Request, refusal: httpx2.Response, sent: str) -> None:
        """Has a person sign in. Several requests that were refused together ask once."""
        async with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._token not in ("", sent):
                return
            back = self._access.redirect_uri
            flow = Flow(self._access, self._guard, self._grant, self._keep, back)
            try:
                await flow.sign_in(request, refusal)
            except SignInFailed as error:
                # Whatever it was, a person has to begin anew.
                self._failed = SignInFailed(error.cause)
                self._access.end(error.cause)
                raise self._failed from None
            self._access.wanted = ""
            self._access.end("")
            self._store.tell(*self._key, signed_in=True)


async def _in_words(stored: Awaitable[_T]) -> _T:
    """What a store answers. Raises SignInFailed where it cannot be used."""
    try:
        return await stored
    except ConfigurationError as error:
        raise SignInFailed(error.message, "failed") from None


def needs_more_rights(response: httpx2.Response) -> bool:
    """Whether a request was refused since the token has too few rights for it."""
    if response.status_code != 403:
        return False
    return extract_field_from_www_auth(response, "error") == "insufficient_scope"
