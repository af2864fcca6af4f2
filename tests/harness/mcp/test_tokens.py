"""Tokens that are kept: by whose they are and who gave them, in a file that is only its user's."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from web.harness.mcp.tokens import (
    MAX_FILE_BYTES,
    MAX_GRANT_BYTES,
    MAX_ISSUERS,
    FileTokenStore,
    Grant,
    TokenStore,
)
from web.harness.values.errors import ConfigurationError

pytestmark = pytest.mark.anyio

SERVER = "https://mcp.example/mcp"
GRANT = Grant(
    issuer="https://auth.example",
    client={"client_id": "me", "client_secret": "client-secret"},
    tokens={"access_token": "access-secret", "refresh_token": "refresh-secret"},
    expires_at=12.5,
    metadata={"issuer": "https://auth.example"},
    resource={"resource": SERVER},
)


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    return TokenStore() if request.param == "memory" else FileTokenStore(tmp_path / "tokens.json")


async def test_a_grant_is_found_by_its_owner_and_server_alone(store: TokenStore) -> None:
    await store.keep("ada", SERVER, GRANT)
    assert await store.find("ada", SERVER) == GRANT
    assert await store.find("bob", SERVER) is None
    assert await store.find("ada", "https://other.example/mcp") is None


async def test_each_issuer_has_its_own_and_the_last_one_counts(store: TokenStore) -> None:
    other = Grant("https://new.example", {"client_id": "other"})
    for grant in (GRANT, other):
        await store.keep("ada", SERVER, grant)
    assert await store.find("ada", SERVER) == other
    await store.keep("ada", SERVER, GRANT)
    assert await store.find("ada", SERVER) == GRANT


async def test_forgotten_tokens_are_gone_and_the_program_stays_registered(
    store: TokenStore,
) -> None:
    await store.keep("ada", SERVER, GRANT)
    await store.keep("bob", SERVER, GRANT)
    await store.forget_tokens("ada", SERVER)
    left = await store.find("ada", SERVER)
    assert left is not None
    assert (left.tokens, left.expires_at, left.client) == (None, None, GRANT.client)
    assert await store.find("bob", SERVER) == GRANT


async def test_one_renewal_at_a_time_is_made_for_a_server(store: TokenStore) -> None:
    first = store.renewing("ada", SERVER)
    assert store.renewing("ada", SERVER) is first
    assert store.renewing("bob", SERVER) is not first


async def test_the_file_is_its_users_alone_and_outlives_the_store(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    previous = os.umask(0)
    try:
        await FileTokenStore(path).keep("ada", SERVER, GRANT)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await FileTokenStore(path).find("ada", SERVER) == GRANT
    assert os.listdir(tmp_path) == ["tokens.json"]


def _readable_by_others(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0o640)


def _a_link(path: Path) -> None:
    target = path.with_name("target.json")
    target.write_text("{}")
    target.chmod(0o600)
    path.symlink_to(target)


def _a_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _other_content(path: Path) -> None:
    path.write_text('{"format": 99, "secret": "hidden"}')
    path.chmod(0o600)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_readable_by_others, "can be read by others; make it yours alone (chmod 600)"),
        (_a_link, "is a link"),
        (_a_pipe, "is no file"),
        (_other_content, "is no file of tokens that this program knows"),
        (lambda path: path.mkdir(), "is no file"),
    ],
)
async def test_a_file_that_is_not_safe_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "tokens.json"
    make(path)
    before = os.lstat(path)
    store = FileTokenStore(path)
    with pytest.raises(ConfigurationError) as caught:
        store.check()
    assert caught.value.message == f"The file of MCP tokens {path} {words}."
    with pytest.raises(ConfigurationError):
        await store.keep("ada", SERVER, GRANT)
    assert os.lstat(path).st_ino == before.st_ino


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"The folder of .* does not exist"):
        FileTokenStore(tmp_path / "none" / "tokens.json").check()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        FileTokenStore(Path("/proc/tokens.json")).check()
    FileTokenStore(tmp_path / "tokens.json").check()


async def test_a_file_that_cannot_be_written_keeps_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    await FileTokenStore(path).keep("ada", SERVER, GRANT)
    before = path.read_bytes()
    unwritable = Grant("https://new.example", {"client_id": object()})
    with pytest.raises(TypeError):
        await FileTokenStore(path).keep("ada", SERVER, unwritable)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["tokens.json"]


async def test_a_grant_that_is_too_large_is_refused_before_it_is_kept(store: TokenStore) -> None:
    await store.keep("ada", SERVER, GRANT)
    huge = replace(GRANT, tokens={"access_token": "A" * MAX_GRANT_BYTES})
    with pytest.raises(ConfigurationError, match="wants over 64 KB to be kept"):
        await store.keep("ada", SERVER, huge)
    assert await store.find("ada", SERVER) == GRANT


async def test_a_server_with_ever_new_issuers_keeps_a_few(store: TokenStore) -> None:
    other = "https://other.example/mcp"
    await store.keep("ada", other, GRANT)
    for number in range(MAX_ISSUERS + 3):
        await store.keep("ada", SERVER, replace(GRANT, issuer=f"https://a{number}.example"))
    assert await store.find("ada", SERVER) == replace(GRANT, issuer="https://a6.example")
    kept = [key for key in await store._read() if key.server == SERVER]
    assert [key.issuer for key in kept] == [f"https://a{n}.example" for n in range(3, 7)]
    assert await store.find("ada", other) == GRANT


async def test_a_full_file_is_not_written_and_can_still_be_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    store = FileTokenStore(path)
    large = replace(GRANT, tokens={"access_token": "A" * (MAX_GRANT_BYTES - 1_000)})
    entries = [
        {**_entry(large), "server": f"https://s{number}.example"}
        for number in range(MAX_FILE_BYTES // MAX_GRANT_BYTES)
    ]
    path.write_text(json.dumps({"format": 1, "grants": entries}))
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match="would have more than"):
        await store.keep("ada", SERVER, large)
    await store.keep("ada", SERVER, GRANT)
    store.check()
    assert await store.find("ada", "https://s0.example") == large


async def test_what_an_older_version_kept_too_much_of_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    huge = replace(GRANT, metadata={"scopes_supported": ["q" * 1_000] * 1_000})
    path.write_text(json.dumps({"format": 1, "grants": [_entry(huge)]}))
    path.chmod(0o600)
    store = FileTokenStore(path)
    assert await store.find("ada", SERVER) is None
    await store.keep("ada", "https://other.example", GRANT)
    assert path.stat().st_size < 2_000


async def test_a_file_that_is_too_large_is_left_alone_and_sign_ins_are_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(" " * (MAX_FILE_BYTES + 1))
    path.chmod(0o600)
    store = FileTokenStore(path)
    with caplog.at_level(logging.WARNING):
        store.check()
    assert f"The file of MCP tokens {path} has more than 4,194,304 bytes." in caplog.text
    await store.keep("ada", SERVER, GRANT)
    assert await store.find("ada", SERVER) == GRANT
    assert path.stat().st_size == MAX_FILE_BYTES + 1


def _entry(grant: Grant) -> dict[str, object]:
    names = ("issuer", "client", "tokens", "expires_at", "metadata", "resource")
    return {"owner": "ada", "server": SERVER, **{name: getattr(grant, name) for name in names}}


def test_no_representation_holds_a_secret() -> None:
    assert "secret" not in repr(GRANT)
