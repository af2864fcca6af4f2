"""Who may ask what: hosts, origins, sizes, and the headers of every answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.support.app_server import WAIT_SECONDS, app_server, served
from web.harness.values.errors import HarnessError
from web.ui.errors import ErrorAnswers
from web.ui.middleware.safeguards import CONTENT_SECURITY_POLICY, safety

pytestmark = pytest.mark.anyio

LIMIT = 1_000


def small_app(*, allowed_hosts: tuple[str, ...] = ()) -> Starlette:
    """An application with the same guard and a handful of routes."""

    async def echo(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def own_headers(request: Request) -> Response:
        headers = {"Cache-Control": "max-age=60", "Content-Security-Policy": "sandbox"}
        return HTMLResponse("<p>" + "text " * 1_000, headers=headers)

    async def data(request: Request) -> Response:
        return JSONResponse(["text"] * 1_000)

    async def broken(request: Request) -> Response:
        raise RuntimeError("the password is 1234")

    def html(request: Request, status: int, error: HarnessError) -> Response:
        return HTMLResponse(f"<p>{error.message}</p>", status)

    answers = ErrorAnswers(html)
    return Starlette(
        routes=[
            *(Route(path, echo, methods=["GET", "POST"]) for path in ("/", "/api/x", "/stream")),
            Route("/own", own_headers),
            Route("/api/data", data),
            Route("/broken", broken),
        ],
        middleware=safety(LIMIT, answers, allowed_hosts=allowed_hosts),
        exception_handlers=answers.handlers,
    )


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(small_app(allowed_hosts=("Chat.Example",)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
        yield client


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.0.0.1:65535",
        "127.9.8.7:80",
        "[::1]",
        "[::1]:8420",
        "chat.example",
        "CHAT.example:8420",
    ],
)
async def test_names_of_this_server_are_answered(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8420",
        "127.0.0.1:x",
        "127.0.0.1:99999",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "192.168.1.5:8420",
        "0.0.0.0:8420",
        "[::2]",
        "::1",
        "2130706433",
        "127.0.0.1, evil.example",
        "local host",
        "",
    ],
)
async def test_other_names_are_refused_with_words(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert answer.json()["code"] == "bad_host"
    assert answer.json()["hint"]


async def test_two_hosts_are_refused(client: httpx.AsyncClient) -> None:
    headers = [("Host", "127.0.0.1"), ("Host", "evil.example")]
    assert (await client.get("/", headers=headers)).status_code == 421


OWN = {"Origin": "http://127.0.0.1:8420"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        (OWN, 200),
        ({**OWN, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "whatever"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "http://127.0.0.1:8421"}, 403),
        ({"Origin": "https://127.0.0.1:8420"}, 403),
        ({"Origin": "http://localhost:8420"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "http://127.0.0.1:8420.evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        (
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
            403,
        ),
    ],
)
async def test_only_own_pages_and_programs_may_change_something(
    client: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    for path in ("/", "/api/x"):
        answer = await client.post(path, content=b"1234", headers=headers)
        assert answer.status_code == status
        assert status == 200 or answer.json()["code"] == "cross_site"


@pytest.mark.parametrize("port", ["", ":80"])
async def test_the_default_port_may_be_left_out(client: httpx.AsyncClient, port: str) -> None:
    headers = {"Host": f"localhost{port}", "Origin": "http://localhost"}
    assert (await client.post("/", headers=headers)).status_code == 200


LINK = {
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", LINK, 200),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 200),
        ("/api/x", LINK, 200),
        ("/api/x", {**LINK, "Sec-Fetch-Dest": "iframe"}, 403),
        ("/api/x", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("/stream", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ("/stream", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
        ("/stream", {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ("/stream", {"Origin": "http://evil.example"}, 403),
        ("/stream", OWN, 200),
        ("/stream", {}, 200),
    ],
)
async def test_other_sites_may_link_to_pages_and_read_nothing(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], status: int
) -> None:
    answer = await client.get(path, headers=headers)
    assert answer.status_code == status
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_preflight_is_given_nothing(client: httpx.AsyncClient) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await client.options("/api/x", headers=headers)
    assert answer.status_code in (403, 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_body_up_to_the_limit_is_taken_and_one_beyond_is_not() -> None:
    async def pieces(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * 100

    async with served(small_app()) as address, httpx.AsyncClient(base_url=address) as client:
        assert (await client.post("/", content=b"x" * LIMIT)).text == str(LIMIT)
        assert (await client.post("/", content=pieces(10))).text == str(LIMIT)
        for content in (b"x" * (LIMIT + 1), pieces(11), b"x" * 5_000_000):
            answer = await client.post("/", content=content)
            assert answer.status_code == 413
            assert answer.json()["code"] == "too_large"
            assert "1,000" in answer.json()["message"]
        assert (await client.post("/", content=b"still here")).text == "10"


async def test_a_body_announced_beyond_the_limit_is_refused_before_it_comes() -> None:
    async with served(small_app()) as address, asyncio.timeout(WAIT_SECONDS):
        host, port = address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n")
        assert b" 413 " in await reader.readline()
        writer.close()


async def test_every_answer_carries_the_policy(client: httpx.AsyncClient) -> None:
    for path, sent in (
        ("/", {}),
        ("/nowhere", {}),
        ("/broken", {}),
        ("/", {"Host": "evil.example"}),
        ("/api/x", {"Origin": "null"}),
    ):
        answer = await client.get(path, headers=sent)
        headers = answer.headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["permissions-policy"]


async def test_what_a_route_says_of_itself_stays(client: httpx.AsyncClient) -> None:
    answer = await client.get("/own")
    assert answer.headers.get_list("content-security-policy") == ["sandbox"]
    assert answer.headers.get_list("cache-control") == ["max-age=60"]


async def test_pages_may_be_kept_for_the_back_button_and_data_may_not(
    client: httpx.AsyncClient,
) -> None:
    assert (await client.get("/")).headers["cache-control"] == "private, no-cache"
    assert (await client.get("/api/x")).headers["cache-control"] == "no-store"


async def test_pages_are_packed_and_data_is_not(client: httpx.AsyncClient) -> None:
    packed = await client.get("/own")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text.count("text") == 1_000
    assert "content-encoding" not in (await client.get("/api/data")).headers
    plain = await client.get("/own", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


async def test_an_unexpected_error_tells_nothing_of_itself(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await client.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "1234" not in answer.text
    assert "1234" in caplog.text


async def test_people_get_html_and_programs_json(client: httpx.AsyncClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert (await client.get("/nowhere", headers=browser)).text.startswith("<p>")
    assert (await client.post("/nowhere", headers={"HX-Request": "true"})).text.startswith("<p>")
    assert (await client.get("/api/nowhere", headers=browser)).json()["code"] == "not_found"
    assert (await client.get("/nowhere")).json()["code"] == "not_found"


async def test_refused_requests_change_nothing(tmp_path: Path) -> None:
    async with app_server(tmp_path, max_request_bytes=2_000) as server:
        chat = await server.new_chat(title="Kept")
        before = await server.chat(chat)
        message = f"/api/chats/{chat}/messages"
        refused: list[tuple[str, str, dict[str, Any]]] = [
            (
                "POST",
                message,
                {"json": {"text": "x"}, "headers": {"Origin": "http://evil.example"}},
            ),
            ("POST", message, {"json": {"text": "x"}, "headers": {"Origin": "null"}}),
            ("POST", message, {"json": {"text": "x"}, "headers": {"Host": "evil.example"}}),
            ("POST", message, {"json": {"text": "x" * 200_000}}),
            ("POST", message, {"json": {"text": "x", "model": "no:such"}}),
            ("POST", message, {"json": {"text": "x", "unknown": 1}}),
            ("POST", message, {"json": {"text": "   ", "model": "openai:two"}}),
            (
                "POST",
                message,
                {"content": b'{"text": "x"}', "headers": {"Content-Type": "text/plain"}},
            ),
            ("POST", message, {"content": b'{"text": "x"', "headers": JSON}),
            ("POST", message, {"data": {"text": "x"}}),
            ("PATCH", f"/api/chats/{chat}", {"json": {"title": "Other", "model": "no:such"}}),
            ("PATCH", f"/api/chats/{chat}", {"json": {"title": "x" * 500}}),
            ("DELETE", f"/api/chats/{chat}", {"headers": {"Sec-Fetch-Site": "cross-site"}}),
            ("POST", f"/chats/{chat}/messages", {"data": {"text": "x" * 20_000}}),
            ("POST", f"/chats/{chat}/delete", {"headers": {"Origin": "http://evil.example"}}),
            ("POST", "/api/chats", {"json": {"title": "x" * 500}}),
            ("POST", "/api/chats", {"json": {}, "headers": {"Origin": "null"}}),
        ]
        for method, path, request in refused:
            answer = await server.client.request(method, path, **request)
            assert 400 <= answer.status_code < 500, (method, path, request)
            assert set(answer.json()) == {"code", "message", "hint"}
        assert await server.chat(chat) == before
        assert len((await server.client.get("/api/chats")).json()) == 1


async def test_a_client_that_goes_away_in_mid_request_leaves_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(small_app()) as address:
        host, port = address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with httpx.AsyncClient(base_url=address) as client:
            assert (await client.post("/", content=b"1")).text == "1"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


JSON = {"Content-Type": "application/json"}
