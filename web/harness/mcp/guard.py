"""What may be fetched while a person signs in: addresses there are named by strangers."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from enum import Enum
from urllib.parse import urlsplit

import anyio
import httpx2

from web.harness.mcp.trust import trusted

MAX_BODY_BYTES = 2**20
SECONDS = 15.0
"""How long one answer may take."""
MAX_TRIED = 4
"""Addresses of one host that are tried one after the other."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The IP addresses of a host; raises OSError."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NEVER = frozenset(
    map(
        ipaddress.ip_address,
        ("169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"),
    )
)
"""Where cloud machines find their own credentials."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Place(Enum):
    """Where an address is, as seen from this machine."""

    WORLD = "world"
    NETWORK = "network"
    LINK = "link"
    LOOPBACK = "loopback"
    NOWHERE = "nowhere"


_REACHED = {
    Place.WORLD: {Place.WORLD},
    Place.NETWORK: {Place.WORLD, Place.NETWORK},
    Place.LINK: {Place.WORLD, Place.NETWORK, Place.LINK},
    Place.LOOPBACK: {Place.WORLD, Place.NETWORK, Place.LOOPBACK},
    Place.NOWHERE: {Place.WORLD},
}
"""What a server at one place may send this program to: nothing that is nearer than itself."""


class Forbidden(Exception):
    """An address that is not fetched or opened; the message says which and why."""


class Guard:
    """Decides for one MCP server. Its own address was given by the person, and is not judged."""

    def __init__(self, server_url: str, resolve: Resolve | None = None) -> None:
        self._server = urlsplit(server_url).hostname or ""
        self._resolve = resolve or _resolved
        self._place: Place | None = None

    def client(self) -> httpx2.AsyncClient:
        """A client that can reach nothing else, and follows no redirect by itself."""
        return httpx2.AsyncClient(
            transport=_GuardedTransport(self), timeout=SECONDS, follow_redirects=False
        )

    async def fetch(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """The whole answer. Raises Forbidden, or httpx2.HTTPError, also where it is too large."""
        async with aclosing(await client.send(request, stream=True)) as response:
            body = bytearray()
            with anyio.move_on_after(SECONDS) as clock:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        raise httpx2.RemoteProtocolError("The answer is too large.")
            if clock.cancelled_caught:
                raise httpx2.ReadTimeout("The answer took too long.")
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        whole = httpx2.Response(
            response.status_code, headers=headers, content=bytes(body), request=request
        )
        whole.next_request = response.next_request
        return whole

    def check_page(self, address: str) -> None:
        """Raises Forbidden for an address that no person is sent to: only https is safe to open."""
        host, scheme = host_of(address), urlsplit(address).scheme
        if not host or any(char <= " " or char in "\\\x7f" for char in address):
            raise Forbidden("The page to sign in at has no address that can be opened.")
        local = is_loopback_name(host) and is_loopback_name(self._server)
        if scheme != "https" and not (scheme == "http" and local):
            raise Forbidden(f"The page to sign in at {_shown(host)} is not at an https address.")

    async def addresses(self, url: httpx2.URL) -> list[str]:
        """The IP addresses of `url` that may be asked. Raises Forbidden or httpx2.ConnectError."""
        host, shown = url.host, _shown(url.host)
        if url.scheme not in ("http", "https"):
            raise Forbidden(f"{shown} is not at an https address.")
        try:
            found = await self._resolve(host, url.port or (443 if url.scheme == "https" else 80))
        except OSError as error:
            raise httpx2.ConnectError(f"The host {shown} was not found.") from error
        places = {place_of(address) for address in found}
        allowed = _REACHED[await self._server_place()]
        # One forbidden address is enough: a name that has both kinds is a trick.
        if not places or not places <= allowed:
            raise Forbidden(f"{shown} is at an address that sign-in may not use.")
        if url.scheme == "http" and places != {Place.LOOPBACK}:
            raise Forbidden(f"{shown} is not at an https address.")
        return found

    async def _server_place(self) -> Place:
        if self._place is None:
            self._place = await self._found_place()
        return self._place

    async def _found_place(self) -> Place:
        if is_loopback_name(self._server):
            return Place.LOOPBACK
        try:
            places = {place_of(each) for each in await self._resolve(self._server, 443)}
        except OSError:
            return Place.WORLD
        # A name that leads to this machine gets no further for it: anybody can make such a name.
        return places.pop() if len(places) == 1 and Place.LOOPBACK not in places else Place.WORLD


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to the address that was judged, so that the name is not looked up once more."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        # A kept connection would go by the address alone, and its certificate by another name.
        limits = httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=trusted(), limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        failed: httpx2.TransportError = httpx2.ConnectError("It has no address.")
        for address in (await self._guard.addresses(request.url))[:MAX_TRIED]:
            extensions = {**request.extensions, "sni_hostname": request.url.host}
            sent = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers.raw,
                stream=request.stream,
                extensions=extensions,
            )
            try:
                return await self._inner.handle_async_request(sent)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        raise failed

    async def aclose(self) -> None:
        await self._inner.aclose()


def place_of(address: str) -> Place:
    """Where an IP address is; one that holds another counts as that one."""
    parsed: _Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = _embedded(parsed) or parsed
    if parsed in _NEVER or parsed.is_unspecified or parsed.is_multicast:
        return Place.NOWHERE
    if parsed.is_loopback:
        return Place.LOOPBACK
    if parsed.is_link_local:
        return Place.LINK
    if parsed.is_global:
        return Place.WORLD
    return Place.NOWHERE if parsed.is_reserved else Place.NETWORK


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def is_loopback_name(host: str) -> bool:
    """Whether a host names this machine by itself, without anybody's name service."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return place_of(name) is Place.LOOPBACK
    except ValueError:
        return False


def host_of(address: str) -> str:
    """The host of an address; '' for what has none, or hides it behind a name before it."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError where it is no number
    except ValueError:
        return ""
    return "" if parts.username is not None else parts.hostname or ""


def _shown(host: str) -> str:
    text = "".join(char for char in host if char.isprintable())
    return text if len(text) <= 100 else text[:99] + "…"


async def _resolved(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))
