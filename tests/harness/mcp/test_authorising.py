"""Tokens in use: kept for the next connect, renewed, given more rights, bound to one issuer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from tests.support.authorization_server import realm, sent_back
from tests.support.mcp_wire import SECONDS, until
from tests.support.signing_in import BACK, asked, at, by_program, finished, signing_in
from web.harness.mcp.connection import Connection
from web.harness.mcp.failures import Seen, call_error
from web.harness.mcp.secret_forms import CONCEALED
from web.harness.mcp.spec import OAuthClient, ServerSpec, read_servers
from web.harness.mcp.tokens import FileTokenStore, TokenStore
from web.harness.values.errors import ConfigurationError, ToolError

pytestmark = pytest.mark.anyio


async def test_kept_tokens_are_used_without_asking_and_renewed_when_they_run_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens.json"
    async with realm(token_seconds=0.0) as made:
        async with signing_in(FileTokenStore(path)) as connections:
            connection = connections.connect(at(made))
            made.token_seconds = 3600.0
            assert await finished(connection, await asked(connection)) == ""
            await connection.ready()
        made.token_seconds = 0.0
        made.expire()
        async with signing_in(FileTokenStore(path)) as connections:
            made.token_seconds = 3600.0
            connection = connections.connect(at(made))
            await connection.ready()
            assert connection.status.signed_in
        kinds = [each["grant_type"] for each in made.granted]
        assert kinds == ["authorization_code", "refresh_token"]
        assert made.granted[-1]["resource"] == made.url
        assert len(made.asked) == len(made.registered) == 1


async def test_tokens_known_to_have_run_out_are_renewed_before_they_are_sent() -> None:
    store = TokenStore()
    async with realm() as made:
        async with signing_in(store, **by_program()) as connections:
            await connections.connect(at(made)).ready()
        grant = await store.find("", made.url)
        assert grant is not None
        await store.keep("", made.url, replace(grant, expires_at=1.0))
        made.refused = 0
        async with signing_in(store) as connections:
            await connections.connect(at(made)).ready()
        assert made.refused == 0
        assert made.granted[-1]["grant_type"] == "refresh_token"


async def test_a_refused_renewal_asks_for_a_sign_in_and_a_failing_one_is_tried_again() -> None:
    async with realm() as made, signing_in() as connections:
        connection = connections.connect(at(made))
        assert await finished(connection, await asked(connection)) == ""
        await connection.ready()
        made.expire()
        made.token_status = 503
        with pytest.raises(ToolError, match=r"localhost could not renew the sign-in \(503\)"):
            await connection.call("echo", {"text": "hi"})
        made.token_status = 0
        await until(connection, lambda status: status.state == "ready")
        assert not (await connection.call("echo", {"text": "hi"})).is_error
        made.revoke()
        with pytest.raises(ToolError, match="asks you to sign in"):
            await connection.call("echo", {"text": "hi"})
        status = await until(connection, lambda status: status.state == "sign_in")
        assert not status.signed_in
        assert await finished(connection, await asked(connection)) == ""
        await until(connection, lambda status: status.state == "ready")
        assert len(made.registered) == 1


def test_a_call_that_a_refusal_elsewhere_cut_off_says_that_a_person_is_asked_for() -> None:
    spec = ServerSpec(name="web", kind="http", url="http://localhost:1/mcp")
    closed = MCPError(CONNECTION_CLOSED, "Connection closed")
    words = call_error(closed, "'echo'", spec, Seen(status=401)).message
    assert "ended while 'echo' ran (localhost asks you to sign in)" in words.replace(":1", "")
    assert "asks you" not in call_error(closed, "'echo'", spec, Seen(ending="It left.")).message


async def test_the_older_transport_signs_in_renews_and_ends_the_same_way() -> None:
    async with realm(sse=True) as made, signing_in() as connections:
        connection = connections.connect(at(made, kind="sse"))
        assert await finished(connection, await asked(connection)) == ""
        await connection.ready()
        made.expire()
        assert not (await connection.call("echo", {"text": "hi"})).is_error
        made.revoke()
        with anyio.fail_after(SECONDS):
            await _refused_call(connection)
        await until(connection, lambda status: "asks you to sign in" in status.cause)


async def test_a_renewal_is_not_cut_off_when_its_connection_ends() -> None:
    store, asked_for, goes_on = TokenStore(), anyio.Event(), anyio.Event()

    async def renewing() -> None:
        asked_for.set()
        await goes_on.wait()

    async with realm() as made:
        async with signing_in(store, **by_program()) as connections:
            connection = connections.connect(at(made))
            await connection.ready()
            made.expire()
            made.renewing = renewing
            with anyio.fail_after(SECONDS):
                async with anyio.create_task_group() as group:
                    group.start_soon(_refused_call, connection)
                    await asked_for.wait()
                    connection.leave()
                    for _ in range(200):
                        # Whatever the end cancels has heard of it by then.
                        await anyio.lowlevel.checkpoint()
                    goes_on.set()
        async with signing_in(store) as connections:
            await connections.connect(at(made)).ready()
        assert len(made.asked) == 1


async def _refused_call(connection: Connection) -> None:
    with pytest.raises(ToolError):
        await connection.call("echo", {"text": "hi"})


async def test_calls_side_by_side_renew_once_and_do_not_wait_for_one_another() -> None:
    async with realm() as made, signing_in(**by_program()) as connections:
        connection = connections.connect(at(made))
        await connection.ready()
        made.expire()
        results: list[object] = []

        async def call() -> None:
            results.append(await connection.call("echo", {"text": "hi"}))
            if len(results) == 5:
                group.cancel_scope.cancel()

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                # Its answer begins when it has ended; the others do not wait for that.
                group.start_soon(connection.call, "wait", {"seconds": 2 * SECONDS})
                for _ in range(5):
                    group.start_soon(call)
        assert len(results) == 5
        assert [each["grant_type"] for each in made.granted].count("refresh_token") == 1


async def test_connections_of_one_owner_share_a_renewed_token_and_others_do_not() -> None:
    store = TokenStore()
    async with (
        realm() as made,
        signing_in(store, **by_program()) as connections,
        signing_in(store, owner="bob") as others,
    ):
        one = connections.connect(at(made, "one"))
        await one.ready()
        two = connections.connect(at(made, "two"))
        await two.ready()
        assert len(made.asked) == 1
        made.expire()
        for connection in (one, two):
            assert not (await connection.call("echo", {"text": "hi"})).is_error
        assert [each["grant_type"] for each in made.granted].count("refresh_token") == 1
        stranger = others.connect(at(made, "three"))
        await until(stranger, lambda status: status.state == "sign_in")
        await one.access.sign_out()
        await until(two, lambda status: status.cause == "You have signed out.")


async def test_one_sign_in_is_enough_for_all_connections_to_a_server() -> None:
    async with realm() as made, signing_in() as connections:
        one, two = (connections.connect(at(made, name)) for name in ("one", "two"))
        await until(two, lambda status: status.state == "sign_in")
        assert await finished(one, await asked(one)) == ""
        for connection in (one, two):
            await until(connection, lambda status: status.state == "ready")
        assert len(made.asked) == 1


async def test_a_tool_that_needs_more_rights_asks_the_person_once_more() -> None:
    async with realm(needed={"point": "write"}) as made, signing_in() as connections:
        connection = connections.connect(at(made))
        assert await finished(connection, await asked(connection)) == ""
        await connection.ready()
        with pytest.raises(ToolError, match="wants more rights than it has been given"):
            await connection.call("point", {"x": 1, "y": 2})
        status = await until(connection, lambda status: status.state == "sign_in")
        assert "wants more rights" in status.cause
        assert await finished(connection, await asked(connection)) == ""
        await connection.ready()
        assert [each["scope"] for each in made.asked] == ["mcp", "mcp write"]
        point = await connection.call("point", {"x": 1, "y": 2})
        assert point.structured_content == {"x": 1, "y": 2}


async def test_a_program_is_asked_for_more_rights_in_the_middle_of_a_call_with_a_bound() -> None:
    needed = {"point": "write", "echo": "never"}
    async with realm(needed=needed) as made, signing_in(**by_program()) as connections:
        connection = connections.connect(at(made))
        await connection.ready()
        point = await connection.call("point", {"x": 1, "y": 2})
        assert point.structured_content == {"x": 1, "y": 2}
        made.gives = "mcp"
        with pytest.raises(ToolError, match="wants more rights"):
            await connection.call("echo", {"text": "hi"})
        assert [each["scope"] for each in made.asked] == ["mcp", "mcp write", "mcp write never"]


@pytest.mark.full
async def test_a_program_is_not_asked_for_ever_for_rights_that_are_never_given() -> None:
    async with realm(gives="little") as made, signing_in(**by_program()) as connections:
        connection = connections.connect(at(made))
        with pytest.raises(ToolError, match="wants more rights"):
            await connection.ready()
    assert len(made.asked) == 3


async def test_a_client_of_the_configuration_is_shown_to_its_issuer_alone() -> None:
    client = OAuthClient("known", "client-secret-of-ours", scope="mcp extra")
    async with realm(clients={"known": client.client_secret}) as made:
        spec = at(made, oauth=client)
        async with signing_in() as connections:
            connection = connections.connect(spec)
            address = await asked(connection)
            assert await finished(connection, address) == ""
            await connection.ready()
            shown = " ".join([address, repr(vars(connection)), repr(connection.status), repr(spec)])
        assert made.registered == {}
        assert made.asked[0]["client_id"] == "known"
        assert made.asked[0]["scope"] == "mcp extra"
        assert made.granted[0]["authorization"].startswith("Basic ")
        assert client.client_secret not in shown + str(made.asked) + str(made.granted)
        assert spec.conceal(client.client_secret) == CONCEALED
        bound = at(made, oauth=replace(client, issuer="https://auth.example"))
        async with signing_in(**by_program()) as connections:
            connection = connections.connect(bound)
            with pytest.raises(ToolError, match="does not register this program"):
                await connection.ready()
        assert len(made.asked) == len(made.granted) == 1


@pytest.mark.full
async def test_a_published_description_of_this_program_takes_the_place_of_registration() -> None:
    url = "https://chat.example/oauth/client-metadata.json"
    described = {"client_id_metadata_document_supported": True}
    async with realm(metadata=described) as made:
        async with signing_in(**by_program(client_metadata_url=url)) as connections:
            await connections.connect(at(made)).ready()
        assert made.registered == {}
        assert made.asked[0]["client_id"] == url
        made.metadata = {}
        async with signing_in(**by_program(client_metadata_url=url)) as connections:
            await connections.connect(at(made)).ready()
        assert len(made.registered) == 1


@pytest.mark.full
async def test_a_program_that_has_moved_to_another_port_registers_anew() -> None:
    store = TokenStore()
    async with realm() as made:
        for back in (BACK, BACK, BACK.replace("8420", "8421")):
            async with signing_in(store, redirect_uri=back, visit=sent_back) as connections:
                await connections.connect(at(made)).ready()
            made.revoke()
        assert len(made.registered) == 2
        assert [each["redirect_uri"][16:21] for each in made.asked] == [":8420", ":8420", ":8421"]


async def test_what_one_issuer_gave_is_never_sent_to_another() -> None:
    store = TokenStore()
    async with realm() as old, realm() as new:
        async with signing_in(store, **by_program()) as connections:
            connection = connections.connect(at(old))
            await connection.ready()
            old.revoke()
            old.resource = {"authorization_servers": [new.issuer]}
            new.url = old.url
            new.access = old.access
            assert not (await connection.call("echo", {"text": "hi"})).is_error
        assert len(new.registered) == len(new.asked) == 1
        sent = str(new.registered) + str(new.asked) + str(new.granted)
        assert not [secret for secret in old.secrets if secret in sent]


async def test_a_file_of_tokens_that_cannot_be_used_is_a_failure_in_words(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text("{}")
    path.chmod(0o644)
    async with realm() as made, signing_in(FileTokenStore(path)) as connections:
        connection = connections.connect(at(made))
        with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="can be read by others"):
            await connection.ready()


def test_a_client_is_read_from_the_configuration() -> None:
    text = '{"mcpServers": {"a": {"url": "https://a.example", "oauth": %s}}}'
    given = '{"clientId": "me", "clientSecret": "${MY_SECRET}", "scope": "a b", "other": 1}'
    (spec,) = read_servers(text % given, {"MY_SECRET": "hush-hush"})
    assert spec.oauth == OAuthClient("me", "hush-hush", "a b")
    assert "hush" not in repr(spec)
    for bad, words in (
        ('{"clientSecret": "x"}', "'oauth.clientSecret' of MCP server 'a' does not go without"),
        ('{"clientId": 1}', "'oauth.clientId' of MCP server 'a' must be text in quotes"),
        ('"me"', "'oauth' of MCP server 'a' must be an object"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            read_servers(text % bad, {})
