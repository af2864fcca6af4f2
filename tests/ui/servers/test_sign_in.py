"""Signing in to a server from the page: a button, a link, and a way back that tells no secret."""

from __future__ import annotations

import asyncio
import html
import logging
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.authorization_server import Realm, realm, sent_back

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
KEY = re.compile(r'action="/chats/[^"]+/servers/([^"/]+)/')
LINK = re.compile(
    r'<a [^>]*href="([^"]+)" target="_blank" rel="noopener[^>]*><span>Continue at (.*?)</span></a>'
)
LOGGERS = ("web", "mcp", "httpx2", "httpcore2", "uvicorn")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AppServer]:
    async with app_server(tmp_path / "data") as made:
        yield made


async def until(server: AppServer, chat: str, wanted: Callable[[str], object]) -> str:
    """The page of the chat once it is as wanted, asked for again after each change."""
    async with asyncio.timeout(20):
        while True:
            text = (await server.client.get(f"/chats/{chat}")).text
            if wanted(text):
                return text
            await asyncio.sleep(0.02)


async def post(server: AppServer, chat: str, path: str, **fields: str) -> httpx.Response:
    found = TOKEN.search((await server.client.get(f"/chats/{chat}")).text)
    assert found is not None
    return await server.client.post(f"/chats/{chat}/{path}", data={"token": found[1], **fields})


async def connected(server: AppServer, made: Realm) -> tuple[str, str]:
    """A chat with the server of a realm, which waits for a sign-in; the server's key."""
    chat = await server.new_chat()
    await post(server, chat, "servers", target=made.url, name="shop")
    text = await until(server, chat, lambda text: "needs sign-in" in text)
    assert "asks you to sign in" in text
    found = KEY.search(text)
    assert found is not None
    return chat, found[1]


async def link(server: AppServer, chat: str, key: str) -> str:
    """Presses the button; the address that the page then offers."""
    # Without script the answer leads back to the page, which has the link at once.
    answer = await post(server, chat, f"servers/{key}/sign-in")
    assert answer.status_code == 303
    text = (await server.client.get(f"/chats/{chat}")).text
    found = LINK.search(text)
    assert found is not None
    assert urlsplit(html.unescape(found[1])).netloc in found[2]
    assert "Cancel sign-in" in text
    return html.unescape(found[1])


async def back(server: AppServer, address: str, **headers: str) -> httpx.Response:
    """What the browser is shown that another site has sent back."""
    navigation = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
        "accept": "text/html",
    }
    answer = await server.client.get(await sent_back(address), headers=navigation | headers)
    # Neither what the server was told nor what it says stays in the address of the tab.
    assert (answer.status_code, answer.headers["referrer-policy"]) == (303, "no-referrer")
    shown = answer.headers["location"]
    assert "code" not in shown
    assert "?" not in shown
    return await server.client.get(shown, headers=navigation | headers)


async def test_a_person_signs_in_from_the_page_and_no_secret_is_told(
    server: AppServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with realm() as made:
        chat, key = await connected(server, made)
        await until(server, chat, lambda text: "<bdi>shop needs sign-in</bdi>" in text)
        address = await link(server, chat, key)
        assert f"redirect_uri={server.address.replace(':', '%3A').replace('/', '%2F')}" in address
        answer = await back(server, address)
        assert answer.status_code == 200
        assert "Signed in to shop" in answer.text
        assert "You can close this tab." in answer.text
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        text = await until(server, chat, lambda text: "Sign out" in text and ">echo<" in text)
        assert "shop needs sign-in" not in text
        told = [answer.text, str(answer.headers), text]
        api = f"/api/chats/{chat}"
        for path in (api, f"{api}/servers", f"/changes?channels={chat}&after=0:0"):
            answer = await server.client.get(path)
            assert answer.status_code == 200
            told.append(answer.text)
        again = await back(server, address, accept="text/html")
        assert (again.status_code, "Signed in" in again.text) == (410, False)
        await post(server, chat, f"servers/{key}/sign-out")
        text = await until(server, chat, lambda text: "You have signed out." in text)
        assert "Sign out" not in text
        # The browser of this test logs where it goes; the server does not.
        told += [
            caplog.handler.format(each) for each in caplog.records if each.name.startswith(LOGGERS)
        ]
        told += [text, again.text]
        assert len(made.secrets) > 4
        assert not [secret for secret in made.secrets if secret in " ".join(told)]


async def test_what_goes_wrong_is_said_in_both_tabs_and_can_be_done_again(
    server: AppServer,
) -> None:
    async with realm(page={"code": "", "error": "access_denied"}) as made:
        chat, key = await connected(server, made)
        answer = await back(server, await link(server, chat, key))
        assert answer.status_code == 403
        assert "Not signed in to shop" in answer.text
        assert "The sign-in was denied." in answer.text
        await until(server, chat, lambda text: "The sign-in was denied." in text)
        made.page = {}
        address = await link(server, chat, key)
        assert (await post(server, chat, f"servers/{key}/sign-in/cancel")).status_code == 303
        await until(server, chat, lambda text: "The sign-in was cancelled." in text)
        answer = await back(server, address)
        assert answer.status_code == 410
        assert "This sign-in is over" in answer.text
        await post(server, chat, f"servers/{key}/sign-in")
        address = await link(server, chat, key)
        await post(server, chat, f"servers/{key}/disconnect")
        answer = await back(server, address)
        assert (answer.status_code, "Nobody waits for this sign-in" in answer.text) == (410, True)


async def test_only_a_page_that_is_opened_uses_a_callback_up(server: AppServer) -> None:
    async with realm() as made:
        chat, key = await connected(server, made)
        callback = await sent_back(await link(server, chat, key))
        for answer in (
            await server.client.head(callback),
            await server.client.get(callback, headers={"sec-purpose": "prefetch;prerender"}),
        ):
            assert answer.status_code == 204
        strange = await server.client.get(
            "/oauth/callback?code=1&state=%3Cb%3E2", follow_redirects=True
        )
        assert strange.status_code == 410
        assert "<b>" not in strange.text
        assert (await server.client.get(callback, follow_redirects=True)).status_code == 200
        assert (await server.client.get("/oauth/outcome/unknown")).status_code == 410
        await until(server, chat, lambda text: "Sign out" in text)


@pytest.mark.full
async def test_nothing_is_begun_or_ended_without_the_token_of_the_page(server: AppServer) -> None:
    async with realm() as made:
        chat, key = await connected(server, made)
        for path in ("sign-in", "sign-in/cancel", "sign-out"):
            answer = await server.client.post(
                f"/chats/{chat}/servers/{key}/{path}", data={"token": "x"}
            )
            assert answer.status_code == 403
            assert answer.json()["code"] == "stale_page"
        assert made.asked == []
        assert made.registered == {}


async def test_the_program_describes_itself_only_where_that_is_published(tmp_path: Path) -> None:
    async with app_server(tmp_path / "one") as server:
        answer = await server.client.get("/oauth/client-metadata.json")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    url = "https://chat.example/oauth/client-metadata.json"
    async with (
        app_server(tmp_path / "two", settings={"mcp_client_metadata_url": url}) as server,
        realm(metadata={"client_id_metadata_document_supported": True}) as made,
    ):
        described = (await server.client.get("/oauth/client-metadata.json")).json()
        assert described["client_id"] == url
        chat, key = await connected(server, made)
        assert (await back(server, await link(server, chat, key))).status_code == 200
        assert made.asked[0]["client_id"] == url
        assert made.asked[0]["redirect_uri"] in described["redirect_uris"]


@pytest.mark.full
async def test_a_sign_in_outlives_the_server_in_a_file(tmp_path: Path) -> None:
    settings = {"mcp_tokens": tmp_path / "tokens.json"}
    async with realm() as made:
        async with app_server(tmp_path / "one", settings=settings) as server:
            chat, key = await connected(server, made)
            assert (await back(server, await link(server, chat, key))).status_code == 200
        async with app_server(tmp_path / "two", settings=settings) as server:
            chat = await server.new_chat()
            await post(server, chat, "servers", target=made.url, name="shop")
            await until(server, chat, lambda text: "Sign out" in text)
        assert len(made.asked) == 1
