"""Connections: silence, loss, closing, keys, addresses, and many streams at once."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import logging
import socket
import ssl
import traceback
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.asking import asked, gather
from tests.support.model_server import (
    ModelServer,
    TokenStream,
    Valve,
    raw,
    sse,
    stall_after,
    status,
)
from tests.support.model_wire import chat_event, chat_events, event, token
from web.harness.providers import PROVIDER_NAMES, make_provider
from web.harness.providers.endpoints import vendor_api
from web.harness.providers.openai import OpenAIProvider
from web.harness.values.errors import ConfigurationError, ProviderError
from web.harness.values.model import Provider

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"


def self_signed(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A context for a server with a certificate of its own, and one that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cafile=str(path))


def provider_of(server: ModelServer, key: str | None = None) -> Provider:
    return make_provider("openai", api_key=key, base_url=server.base_url)


async def failure(provider: Provider, **fields: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await gather(provider, asked("hi", **fields))
    await provider.aclose()
    return caught.value


@pytest.mark.parametrize("body", [b"", chat_event({"content": "so far"})])
async def test_a_silent_server_is_a_stall(body: bytes) -> None:
    async with ModelServer(stall_after(body)) as server:
        error = await failure(provider_of(server), stall_seconds=0.2)
        assert (error.code, error.transient) == ("provider_stalled", True)
        async with asyncio.timeout(5):
            await server.exchanges[0].client_gone.wait()


async def test_a_server_that_sends_no_head_is_a_stall() -> None:
    async with ModelServer(lambda exchange: exchange.stall()) as server:
        error = await failure(provider_of(server), stall_seconds=0.05)
        assert error.code == "provider_stalled"


async def test_a_server_that_stays_open_after_the_answer_does_not_lose_it() -> None:
    async with ModelServer(stall_after(chat_event({"content": "ok"}, "stop"))) as server:
        found = await gather(provider_of(server), asked("hi", stall_seconds=0.5))
        assert (found.text, found.done.stop_reason) == ("ok", "end_turn")


@pytest.mark.parametrize(
    "reply",
    [
        raw(b""),
        raw(b"HTTP/1.1 200"),
        raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n" + chat_event({"content": "x"})),
        raw(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe\x00garbage"),
        status(200, '{"choices": [{"mess'),
    ],
)
async def test_garbage_is_a_broken_stream(reply: Any) -> None:
    async with ModelServer(reply) as server:
        error = await failure(provider_of(server))
        assert (error.code, error.transient) == ("provider_stream_broken", True)


async def test_a_web_page_is_no_answer() -> None:
    headers = {"content-type": "text/html; charset=utf-8"}
    async with ModelServer(status(200, "<html>Welcome</html>", headers)) as server:
        error = await failure(provider_of(server))
        assert (error.code, error.transient) == ("provider_bad_request", False)
        assert "base_url" in error.hint


async def test_a_body_without_length_ends_with_the_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    async with ModelServer(raw(head, chat_event({"content": "ok"}, "stop"))) as server:
        assert (await gather(provider_of(server), asked("hi"))).text == "ok"


async def test_a_server_that_waits_is_heard_after_its_interim_head() -> None:
    head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    async with ModelServer(raw(head + chat_events("ok"))) as server:
        assert (await gather(provider_of(server), asked("hi"))).text == "ok"


@pytest.mark.parametrize("kept", [1, 2, 3])
async def test_no_byte_is_lost_where_a_head_ends_in_the_next_read(kept: int) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    async with ModelServer(raw(head[:-kept], b"", head[-kept:] + chat_events("ok"))) as server:
        assert (await gather(provider_of(server), asked("hi"))).text == "ok"


async def test_an_unreachable_server_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        provider = make_provider("openai", base_url=f"http://127.0.0.1:{port}/v1")
        error = await failure(provider)
    assert (error.code, error.transient) == ("provider_unreachable", True)
    assert f"127.0.0.1:{port}" in error.message
    assert "base_url" in error.hint


async def test_a_name_that_does_not_exist_is_unreachable() -> None:
    error = await failure(make_provider("anthropic", base_url="http://no-such-host.invalid"))
    assert (error.code, error.transient) == ("provider_unreachable", True)
    assert "no-such-host.invalid" in error.message
    assert "base_url" in error.hint


async def test_a_server_that_speaks_no_tls_is_unreachable() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await failure(make_provider("openai", base_url=f"https://127.0.0.1:{port}"))
    assert error.code == "provider_unreachable"


async def test_a_certificate_that_is_not_trusted_is_told_as_such(tmp_path: Path) -> None:
    async with ModelServer(sse(chat_events("ok")), tls=self_signed(tmp_path)[0]) as server:
        error = await failure(provider_of(server))
    assert (error.code, error.transient) == ("provider_unreachable", False)
    assert "certificate" in error.message


async def test_an_answer_over_tls_is_read_as_any_other(tmp_path: Path) -> None:
    own, trusting = self_signed(tmp_path)
    async with ModelServer(TokenStream(50), tls=own) as server:
        api, url = vendor_api("openai", None, server.base_url)
        provider = OpenAIProvider(api, url, tls=trusting)
        found = await gather(provider, asked("hi"))
        assert found.text == "".join(map(token, range(50)))
        await provider.aclose()


async def test_the_server_says_when_to_come_back() -> None:
    reply = status(429, {"error": {"message": "slow down"}}, {"Retry-After": "7"})
    async with ModelServer(reply) as server:
        error = await failure(provider_of(server))
        assert (error.code, error.transient) == ("provider_rate_limited", True)
        assert error.retry_after == 7.0


async def test_the_start_of_an_endless_error_is_enough() -> None:
    async def reply(exchange: Any) -> None:
        await exchange.head(500, {"content-type": "text/plain"})
        while not exchange.client_gone.is_set():
            await exchange.send(b"x" * 65536)

    async with ModelServer(reply) as server:
        error = await failure(provider_of(server))
        assert error.code == "provider_overloaded"
        assert len(error.message) < 1000


async def test_a_key_that_the_server_repeats_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"Bearer {KEY} is wrong", "type": KEY, "code": KEY}}
    replies = (
        status(401, echo),
        status(400, f"what is {KEY}?"),
        sse(event(echo)),
    )
    async with ModelServer() as server:
        for reply in replies:
            server.script(reply)
            provider = provider_of(server, KEY)
            error = await failure(provider)
            shown = f"{error!r} {error.as_dict()} {vars(error)} {provider!r} {vars(provider)}"
            assert KEY not in shown + "".join(traceback.format_exception(error))
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in caplog.text


async def test_a_key_in_garbage_is_not_shown() -> None:
    async with ModelServer(raw(f"HTTP/1.1 {KEY}\r\n\r\n".encode())) as server:
        error = await failure(provider_of(server, KEY))
        assert KEY not in "".join(traceback.format_exception(error))


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with ModelServer(sse(chat_events("ok"))) as server:
        await gather(provider_of(server), asked("hi"))
        await gather(make_provider("openai", api_key="", base_url=server.base_url), asked("hi"))
        assert all("authorization" not in request.headers for request in server.requests)


async def test_closing_the_generator_closes_the_connection_at_once() -> None:
    valve = Valve(allowed=1)
    async with ModelServer(TokenStream(9, valve=valve)) as server:
        async with aclosing(provider_of(server).stream(asked("hi"))) as stream:
            await anext(stream)
        async with asyncio.timeout(5):
            await server.exchanges[0].client_gone.wait()


async def test_cancelling_the_reader_closes_the_connection_at_once() -> None:
    valve = Valve(allowed=3)
    async with ModelServer(TokenStream(9, valve=valve)) as server:
        task = asyncio.ensure_future(gather(provider_of(server), asked("hi")))
        await valve.passed(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await server.exchanges[0].client_gone.wait()


async def test_closing_the_provider_ends_its_streams_and_refuses_new_ones() -> None:
    valve = Valve(allowed=1)
    async with ModelServer(TokenStream(9, valve=valve)) as server:
        provider = provider_of(server)
        tasks = [asyncio.ensure_future(gather(provider, asked("hi"))) for _ in range(3)]
        async with asyncio.timeout(5):
            while len(server.exchanges) < 3:
                await valve.passed(1)
                await asyncio.sleep(0)
        await provider.aclose()
        await provider.aclose()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, ProviderError) for error in results)
        error = await failure(provider)
        assert (error.code, error.transient) == ("provider_closed", False)
        async with asyncio.timeout(5):
            for exchange in server.exchanges:
                await exchange.client_gone.wait()


async def test_a_held_stream_goes_on_and_a_dropped_one_fails() -> None:
    valve = Valve(allowed=2)
    async with ModelServer(TokenStream(5, valve=valve)) as server:
        whole = asyncio.ensure_future(gather(provider_of(server), asked("hi")))
        await valve.passed(2)
        assert not whole.done()
        await valve.open()
        assert (await whole).text == "".join(map(token, range(5)))
        server.script(TokenStream(5, cut_at=300))
        assert (await failure(provider_of(server))).code == "provider_stream_broken"


async def test_two_hundred_streams_at_once_lose_nothing() -> None:
    async with ModelServer(TokenStream(20)) as server:
        provider = provider_of(server)
        found = await asyncio.gather(*(gather(provider, asked("hi")) for _ in range(200)))
        assert {answer.text for answer in found} == {"".join(map(token, range(20)))}
        await provider.aclose()


async def test_the_vendor_is_asked_for_completion_tokens() -> None:
    api, url = vendor_api("openai", KEY, None)
    sent = OpenAIProvider(api, url).document(asked("hi", max_tokens=7))
    assert sent["max_completion_tokens"] == 7
    assert "max_tokens" not in sent


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_a_missing_key_tells_where_to_give_it(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_provider(name, api_key="  ")
    assert f"make_provider('{name}', api_key=...)" in caught.value.hint
    assert "_API_KEY" not in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        make_provider(name, variables=True)
    assert caught.value.hint == f"Set {name.upper()}_API_KEY."


async def test_an_application_that_read_the_environment_has_its_variables_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_provider("openai", base_url="nowhere", variables=True)
    assert "OPENAI_BASE_URL" in caught.value.message


async def test_an_unknown_provider_names_those_there_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_provider("closedai")
    assert all(name in caught.value.hint for name in PROVIDER_NAMES)


@pytest.mark.parametrize(
    "url", ["localhost:1234", "ftp://host/v1", "http://", "http://[::1", "/v1"]
)
async def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_provider("openai", base_url=url)
    assert "base_url" in caught.value.message


@pytest.mark.parametrize("key", ["sk-\nsecret", "sk-secret-é"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_provider("openai", api_key=key)
    assert "secret" not in f"{caught.value!r} {caught.value.as_dict()}"
