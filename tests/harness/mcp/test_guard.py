"""What may be fetched and opened during a sign-in: nothing nearer than the server itself."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx2
import pytest

from web.harness.mcp.guard import MAX_BODY_BYTES, Forbidden, Guard, Place, place_of

pytestmark = pytest.mark.anyio

NAMES = {
    "mcp.example": ["93.184.216.34"],
    "inside.example": ["10.1.2.3"],
    "tricky.example": ["127.0.0.1"],
    "auth.example": ["93.184.216.35", "2606:2800:220:1::1"],
    "metadata.example": ["169.254.169.254"],
    "both.example": ["93.184.216.34", "10.0.0.1"],
}


async def resolve(host: str, port: int) -> list[str]:
    if host not in NAMES:
        return [host] if host[0].isdigit() or ":" in host else ["127.0.0.1"]
    return NAMES[host]


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("93.184.216.34", Place.WORLD),
        ("10.0.0.1", Place.NETWORK),
        ("192.168.1.1", Place.NETWORK),
        ("100.64.0.1", Place.NETWORK),
        ("fd12::1", Place.NETWORK),
        ("169.254.1.1", Place.LINK),
        ("fe80::1%eth0", Place.LINK),
        ("127.8.9.1", Place.LOOPBACK),
        ("::1", Place.LOOPBACK),
        ("::ffff:127.0.0.1", Place.LOOPBACK),
        ("::ffff:10.0.0.1", Place.NETWORK),
        ("64:ff9b::7f00:1", Place.LOOPBACK),
        ("2002:0a00:0001::1", Place.NETWORK),
        ("0.0.0.0", Place.NOWHERE),
        ("169.254.169.254", Place.NOWHERE),
        ("fd00:ec2::254", Place.NOWHERE),
        ("224.0.0.1", Place.NOWHERE),
        ("255.255.255.255", Place.NOWHERE),
    ],
)
def test_every_address_has_its_place(address: str, place: Place) -> None:
    assert place_of(address) is place


@pytest.mark.parametrize(
    ("server", "url", "allowed"),
    [
        ("https://mcp.example/mcp", "https://auth.example/token", True),
        ("https://mcp.example/mcp", "http://auth.example/token", False),
        ("https://mcp.example/mcp", "https://inside.example/token", False),
        ("https://mcp.example/mcp", "https://both.example/token", False),
        ("https://mcp.example/mcp", "https://127.0.0.1/token", False),
        ("https://mcp.example/mcp", "http://localhost:9/token", False),
        ("https://mcp.example/mcp", "https://metadata.example/latest", False),
        ("https://inside.example/mcp", "https://inside.example/token", True),
        ("https://inside.example/mcp", "https://auth.example/token", True),
        ("https://inside.example/mcp", "https://127.0.0.1/token", False),
        ("http://10.0.0.9/mcp", "https://inside.example/token", True),
        ("http://10.0.0.9/mcp", "http://inside.example/token", False),
        ("http://localhost:1/mcp", "http://127.0.0.1:2/token", True),
        ("http://127.0.0.1:1/mcp", "http://localhost:2/token", True),
        ("http://[::1]:1/mcp", "http://localhost:2/token", True),
        ("http://127.0.0.1:1/mcp", "https://auth.example/token", True),
        ("http://127.0.0.1:1/mcp", "http://inside.example/token", False),
        ("http://127.0.0.1:1/mcp", "https://169.254.169.254/latest", False),
        # A name that leads to this machine is no reason to reach further into it.
        ("http://tricky.example/mcp", "http://127.0.0.1:2/token", False),
        ("https://mcp.example/mcp", "https://tricky.example/token", False),
    ],
)
async def test_a_server_sends_this_program_to_nothing_nearer_than_itself(
    server: str, url: str, allowed: bool
) -> None:
    guard = Guard(server, resolve)
    if allowed:
        assert await guard.addresses(httpx2.URL(url))
    else:
        with pytest.raises(Forbidden):
            await guard.addresses(httpx2.URL(url))


@pytest.mark.parametrize(
    ("server", "page", "allowed"),
    [
        ("https://mcp.example/mcp", "https://auth.example/authorize?a=b", True),
        ("https://mcp.example/mcp", "http://auth.example/authorize", False),
        ("https://mcp.example/mcp", "http://localhost:1/authorize", False),
        ("http://localhost:2/mcp", "http://localhost:1/authorize", True),
        ("http://localhost:2/mcp", "http://auth.example/authorize", False),
        ("http://localhost:2/mcp", "javascript:alert(1)", False),
        ("http://localhost:2/mcp", "data:text/html,hi", False),
        ("http://localhost:2/mcp", "https://bank.example@auth.example/", False),
        ("http://localhost:2/mcp", "https://auth.example\\@bank.example/", False),
        ("http://localhost:2/mcp", "https:///authorize", False),
        ("http://localhost:2/mcp", "https://auth.example:port/", False),
    ],
)
def test_only_a_page_that_is_safe_to_open_is_shown(server: str, page: str, allowed: bool) -> None:
    guard = Guard(server, resolve)
    if allowed:
        guard.check_page(page)
    else:
        with pytest.raises(Forbidden):
            guard.check_page(page)


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body of what its path says, a redirect to a forbidden place, or an endless answer."""
    asked = (await reader.readuntil(b"\r\n\r\n")).decode()
    path = asked.split()[1]
    with suppress(ConnectionError):
        if path == "/moved":
            writer.write(b"HTTP/1.1 302 Go\r\nLocation: http://10.0.0.1/\r\n")
            writer.write(b"Content-Length: 0\r\n\r\n")
        elif path == "/endless":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(2 * MAX_BODY_BYTES // 2**16):
                writer.write(b"x" * 2**16)
                await writer.drain()
        else:
            body = asked.split("\r\n")[1].encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()


async def test_it_connects_to_the_address_that_was_judged_and_follows_nothing() -> None:
    looked_up: list[str] = []

    async def once(host: str, port: int) -> list[str]:
        looked_up.append(host)
        # Whoever looked the name up again would be led elsewhere.
        again = host == "auth.localhost" and looked_up.count(host) > 1
        return ["10.0.0.1"] if again else await resolve(host, port)

    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    guard = Guard("http://localhost:1/mcp", once)
    async with server, guard.client() as client:
        url = f"http://auth.localhost:{port}"
        answer = await guard.fetch(client, httpx2.Request("GET", f"{url}/host"))
        assert answer.text == f"Host: auth.localhost:{port}"
        with pytest.raises(Forbidden):
            await guard.fetch(client, httpx2.Request("GET", f"{url}/again"))
        answer = await guard.fetch(client, httpx2.Request("GET", f"http://127.0.0.1:{port}/moved"))
        assert answer.status_code == 302
        assert answer.next_request is not None
        with pytest.raises(Forbidden):
            await guard.fetch(client, answer.next_request)
        endless = httpx2.Request("GET", f"http://127.0.0.1:{port}/endless")
        with pytest.raises(httpx2.HTTPError, match="too large"):
            await guard.fetch(client, endless)
