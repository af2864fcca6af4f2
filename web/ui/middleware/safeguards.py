"""What every request passes before a route sees it, and every response before it leaves.

Refusals are raised as errors; the outermost guard answers them. So a page, a form and a program
each get them in their own shape, and nothing has happened yet.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from starlette.middleware import Middleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.harness.values.errors import HarnessError
from web.ui.access.identity import LocalPerson, RequestIdentity, unknown_identity
from web.ui.errors import ErrorAnswers, Guarded

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

_GUARDED_READS = ("/api", "/stream", "/changes")
"""What no other site may read, not even blindly; pages can be linked to."""

OPEN = ("/sign-in", "/oauth/client-metadata.json", "/static/")
"""What strangers may see: the page where they sign in, and what is the same for everybody. What
ends with a slash stands for all below it."""

_READS = ("GET", "HEAD", "OPTIONS")
_OWN_SITES = (b"same-origin", b"none")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")


def safety(
    max_request_bytes: int,
    answers: ErrorAnswers,
    *,
    allowed_hosts: Collection[str] = (),
    identity: RequestIdentity | None = None,
    larger: Mapping[re.Pattern[str], int] | None = None,
) -> list[Middleware]:
    """The middleware of the application, outermost first.

    `allowed_hosts` are names, without a port, that this server answers to beside loopback.
    `identity` tells who asks; without, everybody is the person at this machine. `larger` are limits
    of bodies by patterns of the whole path, for what takes files.
    """
    identity = identity or LocalPerson()
    return [
        Middleware(SecurityHeaders),
        # JSON goes to programs at this machine: packing it costs more than sending it.
        Middleware(
            GZipMiddleware,
            compresslevel=6,
            exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/json"),
        ),
        Middleware(Guarded, answers=answers),
        Middleware(KnownHost, allowed=allowed_hosts, addresses=not identity.is_local),
        Middleware(SameSite, public=allowed_hosts),
        Middleware(KnownPerson, identity=identity),
        Middleware(BodyLimit, limit=max_request_bytes, larger=larger),
    ]


class SecurityHeaders:
    """Puts the policy of this server on every response; a header that a route has set stays.

    Pages are `no-cache` and not `no-store`: a browser has to ask whether they are still true, and
    may keep them for its back button. `private`, as a cache of several people must not keep them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # `same-origin` and not `no-referrer`: under that, browsers send `Origin: null` with a
        # page's own forms, and those could not be told from another site's.
        self._headers = [
            (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stored = b"no-store" if scope["path"].startswith("/api/") else b"private, no-cache"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                given += [header for header in self._headers if header[0] not in names]
                if b"cache-control" not in names:
                    given.append((b"cache-control", stored))
                message["headers"] = given
            await send(message)

        await self._app(scope, receive, with_headers)


class KnownHost:
    """Refuses requests for a name that is not this server's.

    A page of another site can make its own name point here (DNS rebinding); what it then asks
    still carries that name. An address cannot be made to point elsewhere: with `addresses` every
    one is answered.
    """

    def __init__(
        self, app: ASGIApp, allowed: Collection[str] = (), *, addresses: bool = False
    ) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            hosts = _values(scope, b"host")
            name = _host_name(hosts[0]) if len(hosts) == 1 else None
            if name is None or not (
                _is_loopback(name) or name in self._allowed or self._is_one(name)
            ):
                more = " Other names are told to it with --allow-host." if self._addresses else ""
                raise HarnessError(
                    "This server does not answer to the name in the request's Host header.",
                    hint=f"Use the address that it printed when it started.{more}",
                    code="bad_host",
                )
        await self._app(scope, receive, send)

    def _is_one(self, name: str) -> bool:
        return self._addresses and _is_address(name)


class SameSite:
    """Refuses what another site's page asks this server, by Origin and Sec-Fetch-Site.

    Browsers send both and a page cannot change them; a request with neither is a program's. Under
    one of the `public` names a proxy may have taken https away.
    """

    def __init__(self, app: ASGIApp, public: Collection[str] = ()) -> None:
        self._app = app
        self._public = frozenset(name.lower() for name in public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_from_here(scope, self._public):
            raise HarnessError(
                "This was asked by a page of another site, which may not use this server.",
                hint="Open this server's own page and do it there. Nothing was changed.",
                code="cross_site",
            )
        await self._app(scope, receive, send)


class KnownPerson:
    """Refuses strangers before any route is asked, but for what anybody may see (`OPEN`)."""

    def __init__(self, app: ASGIApp, identity: RequestIdentity) -> None:
        self._app = app
        self._identity = identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not is_open(scope["path"]):
            peer = scope["client"][0] if scope.get("client") else None
            if self._identity.identify(scope["headers"], peer) is None:
                raise unknown_identity(self._identity)
        await self._app(scope, receive, send)


class BodyLimit:
    """Refuses request bodies over a size in bytes, as announced and as they come.

    `larger` are other limits by patterns of the whole path.
    """

    def __init__(
        self, app: ASGIApp, limit: int, larger: Mapping[re.Pattern[str], int] | None = None
    ) -> None:
        self._app = app
        self._limit = limit
        self._larger = dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        announced = [value for value in _values(scope, b"content-length") if value.isdigit()]
        if any(int(value[:18]) > limit for value in announced):
            raise _too_large(limit)
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > limit:
                    raise _too_large(limit)
            return message

        await self._app(scope, counted, send)

    def _limit_of(self, path: str) -> int:
        for pattern, most in self._larger.items():
            if pattern.fullmatch(path):
                return most
        return self._limit


def _too_large(limit: int) -> HarnessError:
    return HarnessError(
        f"The request has more than {limit:,} bytes, the most that is taken.",
        hint="Send less. Nothing was changed.",
        code="too_large",
    )


def _is_from_here(scope: Scope, public: Collection[str]) -> bool:
    reading = scope["method"] in _READS
    if reading and not _is_guarded(scope["path"]):
        return True
    site, mode, dest = (
        _values(scope, name) for name in (b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest")
    )
    if reading and mode == [b"navigate"] and dest == [b"document"]:
        # Somebody followed a link: the other site cannot see what comes.
        return True
    if any(value not in _OWN_SITES for value in site):
        return False
    origins = _values(scope, b"origin")
    return not origins or (len(origins) == 1 and _is_own_origin(scope, origins[0], public))


def is_open(path: str) -> bool:
    """Whether anybody may ask for a path."""
    return any(path.startswith(each) if each.endswith("/") else path == each for each in OPEN)


def _is_guarded(path: str) -> bool:
    return any(path == start or path.startswith(f"{start}/") for start in _GUARDED_READS)


def _is_own_origin(scope: Scope, origin: bytes, public: Collection[str]) -> bool:
    scheme, host = scope["scheme"], _values(scope, b"host")[0]
    given_scheme, separator, given = origin.decode("latin-1").lower().partition("://")
    if given_scheme == "https" and _host_name(host) in public:
        scheme = "https"
    own = _without_default_port(host.decode("latin-1").lower(), scheme)
    return (
        separator != "" and given_scheme == scheme and _without_default_port(given, scheme) == own
    )


def _without_default_port(host: str, scheme: str) -> str:
    return host.removesuffix(f":{_DEFAULT_PORTS.get(scheme, '')}")


def _values(scope: Scope, name: bytes) -> list[bytes]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value for key, value in headers if key == name]


@lru_cache(maxsize=128)
def _host_name(host: bytes) -> str | None:
    """The name or address in a Host header, without its port; None for what is no host."""
    match = _HOST.fullmatch(host.decode("latin-1").lower())
    if match is None or (match["port"] and int(match["port"]) > 65535):
        return None
    return match["v6"] or match["name"]


@lru_cache(maxsize=128)
def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=128)
def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
