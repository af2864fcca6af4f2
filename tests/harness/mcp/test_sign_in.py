"""Signing in to a server over HTTP: a person does it, it is kept, renewed, and ends in words."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from tests.support.authorization_server import realm
from tests.support.mcp_wire import SECONDS, until
from tests.support.signing_in import BACK, asked, at, by_program, finished, signing_in
from web.harness.mcp.secret_forms import CONCEALED
from web.harness.mcp.sign_in import Returned, returned
from web.harness.mcp.status import Status
from web.harness.mcp.tokens import FileTokenStore, TokenStore
from web.harness.values.errors import ConfigurationError, ToolError

pytestmark = pytest.mark.anyio

LOGGERS = ("web", "mcp", "httpx2", "httpcore2", "anyio", "asyncio")


async def test_a_server_that_wants_a_sign_in_waits_for_a_person() -> None:
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        status = await until(connection, lambda status: status.state == "sign_in")
        assert status.cause == f"{made.url[7:-4]} asks you to sign in."
        assert (made.asked, made.registered, made.granted) == ([], {}, [])
        with pytest.raises(ToolError, match="needs a person to sign in first"):
            await connection.ready()


async def test_a_person_signs_in_and_the_tools_are_there() -> None:
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        address = await asked(connection)
        assert connection.status.state == "sign_in"
        with pytest.raises(ToolError):
            await connection.ready()
        assert await finished(connection, address) == ""
        status = await until(connection, lambda status: status.state == "ready")
        assert status.signed_in
        assert not status.sign_in
        assert [tool.name for tool in status.tools][:2] == ["echo", "point"]
        visit = made.asked[0]
        assert (visit["redirect_uri"], visit["scope"]) == (BACK, "mcp")
        assert made.registered["client-0"]["application_type"] == "native"
        assert not (await connection.call("echo", {"text": "hi"})).is_error


async def test_a_sign_in_that_is_refused_says_so_and_can_be_done_again() -> None:
    odd = {"code": "", "error": "odd\n", "error_description": "<b>\u202eno"}
    other = "is another one than the server named."
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        for page, status, cause in (
            ({"code": "", "error": "access_denied"}, 0, "The sign-in was denied."),
            (odd, 0, "The sign-in service refused: odd. It says: <b>no"),
            ({"iss": "https://other.example"}, 0, other),
            ({"iss": ""}, 0, other),
            ({"code": ""}, 0, "gives answers that cannot be used."),
            ({}, 400, "gave no token (400 invalid_grant)."),
            ({}, 503, "gave no token (503 invalid_grant)."),
        ):
            made.page, made.token_status = page, status
            assert cause in await finished(connection, await asked(connection))
            now = await until(connection, lambda status: status.cause)
            assert now.state == "sign_in"
            assert cause in now.cause
            assert "\n" not in now.cause
        made.page, made.token_status = {}, 0
        assert await finished(connection, await asked(connection)) == ""
        await until(connection, lambda status: status.state == "ready")
        assert len(made.registered) == 1


def _tells(cause: str, status: Status) -> bool:
    return cause in status.cause


async def test_what_cannot_be_trusted_or_reached_is_never_shown_as_a_page() -> None:
    page, metadata = "authorization_endpoint", "http://169.254.169.254/register"
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        await until(connection, lambda status: status.state == "sign_in")
        for described, resource, cause in (
            ({"registration_endpoint": None}, {}, "does not register this program (401)."),
            ({"registration_endpoint": metadata}, {}, "169.254.169.254 is at an address that"),
            ({"issuer": "https://other.example"}, {}, "another one than the server named."),
            ({}, {"resource": "https://other.example/mcp"}, "describes itself as another server."),
            ({}, {"authorization_servers": ["http://127.0.0.1:9"]}, "127.0.0.1, needed to sign"),
            ({"code_challenge_methods_supported": None}, {}, "does not protect its codes (PKCE)."),
            ({page: "http://example.com/"}, {}, "at example.com is not at an https address."),
        ):
            made.metadata, made.resource = described, resource
            connection.begin_sign_in(BACK)
            status = await until(connection, partial(_tells, cause))
            assert (status.state, status.sign_in) == ("sign_in", "")
        assert made.asked == []


async def test_a_callback_that_is_not_waited_for_changes_nothing() -> None:
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        address = await asked(connection)
        strange = Returned("another state", "a code")
        assert connection.access.finish(strange) is None
        assert not connection.access.knows("another state")
        assert connection.status.sign_in == address
        assert await finished(connection, address) == ""
        await until(connection, lambda status: status.state == "ready")
        state = parse_qs(urlsplit(address).query)["state"][0]
        assert connection.access.knows(state)
        assert connection.access.finish(Returned(state, "a code")) is None
        assert connection.status.state == "ready"
    assert returned("code=1") is None
    assert returned("state=1&state=2&code=3") is None


async def test_a_sign_in_can_be_cancelled_and_has_a_limit() -> None:
    async with realm() as made, signing_in(seconds=0.2) as connections:
        connection = connections.connect(at(made))
        await asked(connection)
        connection.access.cancel()
        await until(connection, lambda status: status.cause == "The sign-in was cancelled.")
        await asked(connection)
        await until(
            connection, lambda status: status.cause == "Nobody signed in within 0.2 seconds."
        )
        assert connection.status.state == "sign_in"
        connection.retry()
        await until(connection, lambda status: "asks you to sign in" in status.cause)


async def test_a_server_that_is_disconnected_meanwhile_waits_for_nobody() -> None:
    async with realm() as made:
        async with signing_in() as connections:
            connection = connections.connect(at(made))
            state = parse_qs(urlsplit(await asked(connection)).query)["state"][0]
            with anyio.fail_after(SECONDS):
                await connections.disconnect("web")
            assert connection.status.state == "closed"
            assert connection.access.finish(Returned(state, "code")) is None
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in tasks if "visit" in name]


@pytest.mark.full
async def test_the_time_of_a_connect_stands_still_while_a_person_signs_in() -> None:
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made, connect_seconds=0.5))
        address = await asked(connection)
        with anyio.move_on_after(0.7):
            await until(connection, lambda status: status.state != "sign_in")
        assert await finished(connection, address) == ""
        await until(connection, lambda status: status.state == "ready")


@pytest.mark.full
async def test_only_what_waits_for_a_sign_in_can_begin_one() -> None:
    async with realm() as made, signing_in(**by_program()) as connections:
        connection = connections.connect(at(made))
        await connection.ready()
        with pytest.raises(ConfigurationError, match="does not wait for a sign-in"):
            connection.begin_sign_in(BACK)


async def test_signing_out_forgets_the_tokens(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path / "tokens.json")
    async with realm() as made:
        async with signing_in(store, **by_program()) as connections:
            await connections.connect(at(made)).ready()
        async with signing_in(store) as connections:
            connection = connections.connect(at(made))
            await connection.ready()
            await connection.access.sign_out()
            status = await until(connection, lambda status: status.state == "sign_in")
            assert status.cause == "You have signed out."
            assert not status.signed_in
            connection.retry()
            await until(connection, lambda status: "asks you to sign in" in status.cause)
        held = (tmp_path / "tokens.json").read_text()
        assert not [
            secret for secret in made.secrets if secret[:3] in ("acc", "ref") and secret in held
        ]


async def test_no_secret_is_ever_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store = TokenStore()
    seen: list[object] = []
    async with realm(needed={"point": "write"}) as made:
        async with signing_in(store) as connections:
            connection = connections.connect(at(made))
            connection.watch(lambda changed: seen.append(repr(changed.status)))
            made.token_status = 400
            seen.append(await finished(connection, await asked(connection)))
            made.token_status = 0
            seen.append(await finished(connection, await asked(connection)))
            await connection.ready()
            made.expire()
            await connection.call("echo", {"text": "hi"})
            assert len(made.access) == len(made.refresh) == 1
            for token in (*made.access, *made.refresh):
                assert connection.spec.conceal(f"a {token}") == f"a {CONCEALED}"
            made.refuse_refresh = True
            made.revoke()
            with pytest.raises(ToolError) as caught:
                await connection.call("echo", {"text": "hi"})
            seen += [repr(caught.value), repr(connection.access.setup), repr(connection.spec)]
            seen += [repr(vars(connection)), repr(await store.find("", made.url))]
        assert len(made.secrets) > 7
        # What the browser of this test logs is not ours.
        ours = [
            caplog.handler.format(each)
            for each in caplog.records
            if each.name.split(".")[0] in LOGGERS
        ]
        assert len(ours) > 20
        text = " ".join([*map(str, seen), *ours])
        assert not [secret for secret in made.secrets if secret in text]
