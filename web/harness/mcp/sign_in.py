"""How one connection is authorised by a person: begun, waited for, answered, ended.

What is exchanged with the authorisation server meanwhile is in `authorising.py`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

import anyio

from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.tokens import TokenStore
from web.harness.mcp.wording import tidy

SIGN_IN_SECONDS = 600.0
"""How long a person may take."""
MAX_RETURNED_CHARS = 20_000

_PARAMETERS = ("state", "code", "iss", "error", "error_description")
_DENIED = {
    "access_denied": "The sign-in was denied.",
    "temporarily_unavailable": "The sign-in service is not available at the moment.",
    "server_error": "The sign-in service has an error of its own.",
}

Visit = Callable[[str], Awaitable[str]]
"""Goes to the page and returns the address that it sent the browser back to."""


class SignInFailed(Exception):
    """A sign-in, or a renewal of its tokens, that did not work; the message is one line.

    `state` is that of the connection after it: a person can sign in, or it is tried again.
    """

    def __init__(self, cause: str, state: Literal["sign_in", "failed"] = "sign_in") -> None:
        super().__init__(cause)
        self.cause = cause
        self.state = state


@dataclass(frozen=True, slots=True)
class SignInSetup:
    """What all connections of one owner sign in with.

    `owner` says whose `tokens` they are. `client_metadata_url` is where this program describes
    itself to authorisation servers (https; '' for nowhere). A person has `seconds`. With `visit`
    a program takes the place of the person, and is sent back to `redirect_uri`.
    """

    tokens: TokenStore
    owner: str = ""
    client_metadata_url: str = ""
    seconds: float = SIGN_IN_SECONDS
    redirect_uri: str = ""
    visit: Visit | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """What an authorisation server sent the browser back with."""

    state: str = field(repr=False)
    code: str = field(default="", repr=False)
    issuer: str | None = None
    error: str = ""
    description: str = ""


def returned(query: str) -> Returned | None:
    """The parameters of a callback; None for what is none: no state, or one of them twice."""
    if len(query) > MAX_RETURNED_CHARS:
        return None
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=100)
    found = dict(pairs)
    names = [name for name, _ in pairs if name in _PARAMETERS]
    if not found.get("state") or len(names) > len(set(names)):
        return None
    return Returned(
        state=found["state"],
        code=found.get("code", ""),
        issuer=found.get("iss"),
        error=found.get("error", ""),
        description=tidy(found.get("error_description", ""), 200, one_line=True),
    )


class SignIn:
    """The sign-in of one connection.

    `changed` is called when it begins to wait for the person, and when it does no longer: then
    `address` is where the person has to go, or ''.
    """

    def __init__(self, spec: ServerSpec, setup: SignInSetup, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.setup = setup
        self.server = urlsplit(spec.url)._replace(fragment="").geturl()
        self.address = ""
        self.redirect_uri = setup.redirect_uri if setup.visit else ""
        self.wanted = ""
        """The challenge of a request that needs more rights than were given; '' for none."""
        self.attempt = 0
        """How often a sign-in was begun."""
        self.signed_in = False
        """Whether there are tokens, as far as this connection has seen."""
        self._changed = changed
        self._state = ""
        self._waiting: asyncio.Future[Returned | SignInFailed] | None = None
        self._outcome: asyncio.Future[str] | None = None
        self._cancelled = False
        self._used: deque[str] = deque(maxlen=8)

    @property
    def possible(self) -> bool:
        """Whether there is anything to sign in to: an address that no header opens already."""
        return self.spec.kind != "stdio" and not any(
            name.lower() == "authorization" for name in self.spec.headers
        )

    @property
    def attended(self) -> bool:
        """Whether somebody has asked for a sign-in, so that a refusal leads to one."""
        return bool(self.redirect_uri)

    @property
    def begun(self) -> bool:
        """Whether a person has begun a sign-in that is not over."""
        return self.attended and self.setup.visit is None

    @property
    def waiting(self) -> bool:
        """Whether a person is being waited for."""
        return self._waiting is not None

    def begin(self, redirect_uri: str) -> None:
        """The next refusal leads to a sign-in, which comes back to `redirect_uri`."""
        self.redirect_uri = redirect_uri
        self.attempt += 1
        self._cancelled = False
        self._outcome = asyncio.get_running_loop().create_future()

    def cancel(self) -> None:
        """Ends the sign-in; without one nothing happens."""
        if self.begun:
            self._cancelled = True
            self._answer(SignInFailed("The sign-in was cancelled."))

    def knows(self, state: str) -> bool:
        """Whether a callback with this state is, or was, for this connection."""
        return self._is_waited_for(state) or any(
            secrets.compare_digest(state.encode(), each.encode()) for each in self._used
        )

    def finish(self, answer: Returned) -> asyncio.Future[str] | None:
        """Takes a callback; the result will be '' for a sign-in, or one line that says why not.

        None for one that is not waited for any more. The future must not be cancelled.
        """
        if not self._is_waited_for(answer.state) or self._outcome is None:
            return None
        self._answer(answer)
        return self._outcome

    def end(self, cause: str) -> None:
        """The sign-in that was begun is over; '' for one that worked."""
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(cause)
        if self.setup.visit is None:
            self.redirect_uri = ""

    async def sign_out(self) -> None:
        """Forgets the tokens, and ends every connection that was opened with them.

        Raises ConfigurationError where their file cannot be used.
        """
        await self.setup.tokens.forget_tokens(self.setup.owner, self.server)
        self.setup.tokens.tell(self.setup.owner, self.server, signed_in=False)

    def watch(self, told: Callable[[bool], None]) -> Callable[[], None]:
        """Calls `told` when a person has signed in here or elsewhere (True), or out."""
        return self.setup.tokens.watch(self.setup.owner, self.server, told)

    def hide(self, *values: object) -> None:
        """Keeps these out of every text that is shown of the server."""
        for value in values:
            if isinstance(value, str) and value and value not in self.spec.learned:
                self.spec.learned.append(value)

    async def visit(self, address: str, state: str) -> Returned:
        """Sends the person there and waits for what comes back. Raises SignInFailed."""
        if self._cancelled:
            raise SignInFailed("The sign-in was cancelled.")
        self._state = state
        self._waiting = asyncio.get_running_loop().create_future()
        self.address = "" if self.setup.visit else address
        self._changed()
        try:
            with anyio.fail_after(self.setup.seconds):
                answer = await self._back(address)
        except TimeoutError:
            raise SignInFailed(f"Nobody signed in within {_span(self.setup.seconds)}.") from None
        finally:
            self._used.append(state)
            self._state = self.address = ""
            self._waiting.cancel()
            self._waiting = None
            self._changed()
        if isinstance(answer, SignInFailed):
            raise answer
        if answer.error:
            raise SignInFailed(_denied(answer))
        return answer

    async def _back(self, address: str) -> Returned | SignInFailed:
        if self.setup.visit is not None:
            back = returned(urlsplit(await self.setup.visit(address)).query)
            if back is None or back.state != self._state:
                raise SignInFailed("The sign-in service came back with another sign-in.")
            return back
        if self._waiting is None:
            raise RuntimeError("Nobody is waited for.")
        return await self._waiting

    def _is_waited_for(self, state: str) -> bool:
        waits = self._waiting is not None and not self._waiting.done()
        return waits and secrets.compare_digest(state.encode(), self._state.encode())

    def _answer(self, answer: Returned | SignInFailed) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)


def _denied(answer: Returned) -> str:
    code = tidy(answer.error, 60, one_line=True)
    words = _DENIED.get(code, f"The sign-in service refused: {code}.")
    return f"{words} It says: {answer.description}" if answer.description else words


def _span(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:g} minutes" if minutes >= 2 else f"{seconds:g} seconds"
