"""Authorisation servers that give too much, or what cannot be used, do no harm to others."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from tests.support.authorization_server import realm
from tests.support.mcp_wire import until
from tests.support.signing_in import asked, at, begun, finished, signing_in
from web.harness.mcp.tokens import FileTokenStore

pytestmark = pytest.mark.anyio


async def test_only_what_is_used_of_strangers_documents_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    much = {"scopes_supported": ["q" * 1_000] * 500, "service_documentation": "https://d.example"}
    async with realm(metadata=much) as made:
        async with signing_in(FileTokenStore(path)) as connections:
            connection = connections.connect(at(made))
            assert await finished(connection, await asked(connection)) == ""
            await connection.ready()
        made.expire()
        async with signing_in(FileTokenStore(path)) as connections:
            await connections.connect(at(made)).ready()
        assert made.granted[-1]["grant_type"] == "refresh_token"
    text = path.read_text()
    assert len(text) < 12_000
    assert "service_documentation" not in text


async def test_a_page_with_a_query_of_its_own_keeps_it() -> None:
    async with realm() as made, signing_in() as connections:
        made.metadata = {"authorization_endpoint": f"{made.issuer}/authorize?p=B2C_1&p=%20x#part"}
        connection = connections.connect(at(made, oauth=None))
        address = await asked(connection)
        pairs = parse_qsl(urlsplit(address).query)
        assert pairs[:3] == [("p", "B2C_1"), ("p", " x"), ("response_type", "code")]
        assert address.count("?") == 1
        assert "#" not in address
        assert await finished(connection, address) == ""
        await connection.ready()


async def test_a_page_that_names_a_parameter_of_the_sign_in_is_refused() -> None:
    async with realm() as made, signing_in() as connections:
        made.metadata = {"authorization_endpoint": f"{made.issuer}/authorize?state=theirs"}
        connection = connections.connect(at(made))
        await begun(connection)
        words = "has no address that can be used"
        await until(connection, lambda now: now.state == "sign_in" and words in now.cause)


@pytest.mark.parametrize("field", ["access_token", "refresh_token"])
async def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(
    field: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.json"
    async with realm() as made, signing_in(FileTokenStore(path)) as connections:
        made.answer = {field: "TOKENSECRET999\r\nX-Evil: 1"}
        connection = connections.connect(at(made))
        cause = await finished(connection, await asked(connection))
        assert "gave a token that cannot be sent" in cause
        assert not connection.status.signed_in
        assert "TOKENSECRET999" not in repr(connection.status) + cause + path.read_text()
        assert json.loads(path.read_text())["grants"][0]["tokens"] is None


@pytest.mark.parametrize("field", ["access_token", "refresh_token"])
async def test_a_huge_token_is_refused_and_others_stay_signed_in(
    field: str, tmp_path: Path
) -> None:
    store = FileTokenStore(tmp_path / "tokens.json")
    async with realm() as good, realm() as made, signing_in(store) as connections:
        other = connections.connect(at(good, "good"))
        assert await finished(other, await asked(other)) == ""
        made.answer = {field: "R" * 500_000}
        connection = connections.connect(at(made))
        cause = await finished(connection, await asked(connection))
        assert "wants over 64 KB to be kept" in cause
        assert not connection.status.signed_in
        grant = await store.find("", good.url)
        assert grant is not None
        assert grant.tokens is not None
        store.check()


@pytest.mark.parametrize(
    ("described", "words"),
    [
        (RedirectResponse("http://127.0.0.1:1/"), "answers with a redirect where it describes how"),
        (Response("[" * 100_000), "describes how to sign in with something that is no JSON"),
        (Response("<p>"), "describes how to sign in with something that is no JSON"),
        (
            JSONResponse({"resource": "http://a", "authorization_servers": ["file:///etc/passwd"]}),
            "names no sign-in service with an address that can be used",
        ),
        (JSONResponse({"authorization_servers": []}), "describes how to sign in without what"),
    ],
    ids=["redirect", "deep", "html", "file", "empty"],
)
async def test_a_description_that_cannot_be_used_is_the_cause(
    described: Response, words: str
) -> None:
    async with realm() as made, signing_in() as connections:
        made.described = described
        connection = connections.connect(at(made))
        await begun(connection)
        status = await until(connection, lambda now: now.state == "sign_in" and words in now.cause)
        assert "another server" not in status.cause


async def test_a_description_of_another_server_is_still_called_that() -> None:
    other = {"resource": "https://other.example/mcp"}
    async with realm(resource=other) as made, signing_in() as connections:
        connection = connections.connect(at(made))
        await begun(connection)
        await until(connection, lambda now: "describes itself as another" in now.cause)
