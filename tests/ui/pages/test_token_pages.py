"""People who come with a token: in, out, and what a page that is left open may still do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.scripted_provider import ScriptedProvider
from web.app import create_app
from web.harness.values.errors import ConfigurationError
from web.harness.values.model import TextChunk
from web.settings import Settings
from web.ui.access.identity import COOKIE

pytestmark = pytest.mark.anyio

ANN, BOB = "ann-has-this-long-token", "bob-has-another-long-token"
HTML = {"accept": "text/html"}
PERSON = re.compile(r'data-person="(\w+)"')
TOKEN = re.compile(r'name="token" value="([^"]+)"')


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(f"{ANN} ann\n{BOB} bob acme\n")
    file.chmod(0o600)
    return file


@pytest.fixture
async def server(tmp_path: Path, tokens: Path) -> AsyncIterator[AppServer]:
    async with app_server(tmp_path / "data", settings={"identity": f"token:{tokens}"}) as made:
        yield made


async def sign_in(server: AppServer, token: str, **fields: str) -> httpx.Response:
    """Signs the client in, as the form of the page does."""
    server.client.cookies.clear()
    sent = {"token": token, **fields}
    return await server.client.post("/sign-in", data=sent, headers=HTML)


async def page(server: AppServer, path: str = "/") -> str:
    answer = await server.client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_a_page_leads_a_stranger_to_the_form_and_back_to_itself(server: AppServer) -> None:
    answer = await server.client.get("/chats/none?q=1", headers=HTML)
    assert answer.status_code == 401
    assert answer.headers["cache-control"] == "no-store"
    assert "<h1>Sign in</h1>" in answer.text
    assert 'name="next" value="/chats/none?q=1"' in answer.text
    signed = await sign_in(server, ANN, next="/chats/none?q=1")
    assert (signed.status_code, signed.headers["location"]) == (303, "/chats/none?q=1")
    assert '<bdi title="ann">ann</bdi>' in await page(server)


async def test_no_script_can_read_the_cookie_and_no_other_site_can_use_it(
    server: AppServer,
) -> None:
    cookie = (await sign_in(server, ANN)).headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={ANN}; Path=/; ")
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    over_https = {"origin": server.address.replace("http:", "https:"), **HTML}
    refused = await server.client.post("/sign-in", data={"token": ANN}, headers=over_https)
    assert refused.status_code == 403, "only under a name that was told to the server"


async def test_behind_a_proxy_that_takes_https_away_the_cookie_is_for_https_alone(
    tmp_path: Path, tokens: Path
) -> None:
    settings = {"identity": f"token:{tokens}", "allow_host": "chat.example.com"}
    async with app_server(tmp_path / "data", settings=settings) as server:
        there = {"host": "chat.example.com", "origin": "https://chat.example.com", **HTML}
        answer = await server.client.post("/sign-in", data={"token": ANN}, headers=there)
        assert answer.status_code == 303
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        there["origin"] = "https://evil.example.com"
        answer = await server.client.post("/sign-in", data={"token": ANN}, headers=there)
        assert answer.status_code == 403


@pytest.mark.parametrize("token", ["", "x", "eve-has-this-unknown-token", f"{ANN} ", "ü"])
async def test_what_is_no_token_signs_nobody_in(server: AppServer, token: str) -> None:
    answer = await sign_in(server, token)
    if token.strip() == ANN:
        assert answer.status_code == 303, "white space around it is none of it"
        return
    assert answer.status_code == 401
    assert "not known here" in answer.text
    assert token not in answer.text or len(token) < 2
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["//evil.example.com", "/\\evil.example.com", "https://evil.example.com", "", "/a b"]
)
async def test_signing_in_leads_nowhere_else(server: AppServer, path: str) -> None:
    assert (await sign_in(server, ANN, next=path)).headers["location"] == "/"


async def test_out_again_the_browser_is_told_to_forget_what_it_kept(server: AppServer) -> None:
    await sign_in(server, ANN)
    answer = await server.client.post("/sign-out", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert answer.headers["set-cookie"].startswith(f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly")
    assert "storage" in answer.headers["clear-site-data"]
    assert (await server.client.get("/", headers=HTML)).status_code == 401


async def test_programs_send_it_in_a_header_and_are_told_how(server: AppServer) -> None:
    refused = await server.client.get("/api/chats")
    assert refusal(refused) == (401, "unknown_identity")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in refused.json()["hint"]
    for token, status in ((ANN, 200), ("eve-has-this-unknown-token", 401)):
        headers = {"authorization": f"Bearer {token}"}
        assert (await server.client.get("/api/chats", headers=headers)).status_code == status


async def test_a_page_that_one_person_left_open_does_nothing_for_the_next(
    server: AppServer,
) -> None:
    await sign_in(server, ANN)
    (anns,) = PERSON.findall(await page(server))
    assert (await server.client.get(f"/changes?channels=chats&person={anns}")).status_code == 400
    await sign_in(server, BOB)
    (bobs,) = PERSON.findall(await page(server))
    assert anns != bobs
    for path in ("/changes", "/stream"):
        left = await server.client.get(f"{path}?channels=chats&after=ab12:0&person={anns}")
        assert refusal(left) == (401, "unknown_identity")
    sent = {"text": "For ann alone"}
    script = {"hx-request": "true", "harness-person": anns}
    answer = await server.client.post("/chats", data=sent, headers=script)
    assert (answer.status_code, "Sign in with your token" in answer.text) == (401, True)
    assert (await server.client.get("/api/chats")).json() == []


async def test_commands_are_neither_offered_nor_started(server: AppServer) -> None:
    await sign_in(server, ANN)
    home = await page(server)
    assert "demo server" not in home
    (token, *_) = TOKEN.findall(home)
    chat = await server.new_chat()
    script = {"hx-request": "true"}
    for path, fields in (("servers", {"target": "sh -c id"}), ("servers/demo", {})):
        sent = {"token": token, **fields}
        answer = await server.client.post(f"/chats/{chat}/{path}", data=sent, headers=script)
        assert answer.status_code == 422
    entry = {"command": "sh", "args": ["-c", "id"]}
    answer = await server.client.post(f"/api/chats/{chat}/servers", json=entry)
    assert refusal(answer) == (422, "configuration_error")
    assert (await server.client.get(f"/api/chats/{chat}/servers")).json() == []


async def test_the_skills_of_the_server_are_read_and_not_written(
    server: AppServer, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "skills" / "greeting"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greeting\ndescription: Hello.\n---\n\nHi.\n")
    await sign_in(server, ANN)
    base = f"/api/chats/{await server.new_chat()}/skills"
    listed = {each["name"]: each for each in (await server.client.get(base)).json()}
    assert (listed["greeting"]["origin"], listed["greeting"]["writable"]) == ("server", False)
    answer = await server.client.delete(f"{base}/{listed['greeting']['key']}")
    assert refusal(answer) == (403, "skill_read_only")
    assert (folder / "SKILL.md").exists()


async def test_without_tokens_there_is_no_such_page(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        for method, path in (("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")):
            answer = await server.client.request(method, path, headers=HTML)
            assert answer.status_code == 404
        home = await page(server)
        assert "data-person" not in home
        assert "Sign out" not in home
        assert "Connect the demo server" in home


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"host": "0.0.0.0"}, "--identity"),
        ({"identity": "token:/none/there"}, "does not exist"),
        ({"identity": "header:X-User"}, "address of the proxy"),
        ({"identity": "somehow"}, "no way to know"),
        ({"allow_host": "chat.example.com"}, "--identity"),
    ],
)
def test_a_server_that_could_not_know_who_asks_is_not_made(
    tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        create_app(Settings(data_dir=tmp_path, **fields))
    assert words in f"{refused.value.message} {refused.value.hint}"


async def test_streams_in_which_nothing_happens_end_once_the_token_was_taken_back(
    tmp_path: Path, tokens: Path
) -> None:
    quiet = ScriptedProvider([TextChunk("Half"), asyncio.Event()])
    async with app_server(
        tmp_path / "data", quiet, settings={"identity": f"token:{tokens}"}
    ) as server:
        mine = {"authorization": f"Bearer {ANN}"}
        server.client.headers.update(mine)
        chat = await server.new_chat()
        run = await server.send(chat, "Hi")
        await server.wait_for(run, "text_delta")
        page = f"/stream?channels=chats,{chat}&after=ab12:0"
        async with (
            asyncio.timeout(20),  # A quiet stream is looked at every second or so.
            server.client.stream("GET", page) as shown,
            server.client.stream("GET", f"/api/runs/{run}/events") as told,
        ):
            lines, events = shown.aiter_lines(), told.aiter_lines()
            while await anext(lines) != "event: frame":
                pass
            await anext(events)
            await asyncio.to_thread(tokens.write_text, f"{BOB} ann\n")
            # Nothing else ends them.
            await asyncio.gather(_rest(lines), _rest(events))


async def _rest(lines: AsyncIterator[object]) -> None:
    async for _ in lines:
        pass
