"""Who asks is known only as the server was told to find out, never by a client's word alone."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.values.errors import ConfigurationError
from web.ui.access.identity import (
    Addresses,
    RequestIdentity,
    check_reach,
    is_loopback,
    read_identity,
    token_cookie,
)
from web.ui.access.token_file import TokenFile

PROXY = "10.0.0.5"
ANN = HarnessIdentity("default", "ann")
TOKEN = "ann-has-this-long-token"
OTHER = "bob-has-another-long-token"


def by_header(option: str = "header:X-User") -> RequestIdentity:
    return read_identity(option, [PROXY])


def private(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def by_token(folder: Path, text: str = f"{TOKEN} ann\n{OTHER} bob acme\n") -> RequestIdentity:
    return read_identity(f"token:{private(folder / 'tokens', text)}")


class TestWithoutOne:
    def test_everybody_is_the_person_at_this_machine(self) -> None:
        identity = read_identity(None)
        assert identity.is_local
        assert identity.identify([(b"x-user", b"eve")], "127.0.0.1") == LOCAL_IDENTITY

    def test_nobody_else_may_reach_the_server(self) -> None:
        for host in ("127.0.0.1", "::1", "localhost", "127.5.5.5"):
            check_reach(host, read_identity(None))
        for host in ("0.0.0.0", "::", "192.168.1.2", "", "example.com", "localhost.evil.com"):
            with pytest.raises(
                ConfigurationError, match="not an address that this machine alone reaches"
            ):
                check_reach(host, read_identity(None))
            check_reach(host, by_header())

    def test_proxies_alone_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="no header is named") as refused:
            read_identity(None, [PROXY])
        assert "--identity header:NAME" in refused.value.hint

    def test_a_header_alone_is_refused_with_the_option_that_is_missing(self) -> None:
        with pytest.raises(ConfigurationError) as refused:
            read_identity("header:X-User")
        assert "--trusted-proxy" in refused.value.hint

    @pytest.mark.parametrize("text", ["10.0.0.5/8", "proxy.local", "10.0.0", "fd00::g"])
    def test_what_is_no_address_is_refused_in_words_of_ours(self, text: str) -> None:
        with pytest.raises(ConfigurationError) as refused:
            read_identity("header:X-User", [text])
        assert refused.value.message == f"'{text}' is not the address of a proxy."


class TestByAProxy:
    def test_the_one_whom_it_names_is_known(self) -> None:
        assert by_header().identify([(b"x-user", b"ann")], PROXY) == ANN
        named = by_header("header:X-User,X-Tenant")
        headers = [(b"x-user", b"ann"), (b"x-tenant", b"acme")]
        assert named.identify(headers, PROXY) == HarnessIdentity("acme", "ann")

    @pytest.mark.parametrize("peer", ["10.0.0.6", "127.0.0.1", "::1", None, "", "testclient"])
    def test_from_elsewhere_the_header_means_nothing(self, peer: str | None) -> None:
        assert by_header().identify([(b"x-user", b"ann")], peer) is None

    @pytest.mark.parametrize(
        "headers",
        [
            [],
            [(b"x-user", b"")],
            [(b"x-user", b"  ")],
            [(b"x-user", b"eve"), (b"x-user", b"ann")],
            [(b"x-user", b"ann"), (b"x-user", b"ann")],
            [(b"x-user", b"an\x00n")],
            [(b"x-user", b"an\tn")],
            [(b"x-user", b"\xff\xfe")],
            [(b"x-user", b"a" * 201)],
            [(b"x_user", b"ann")],
        ],
    )
    def test_a_name_that_is_missing_twice_there_or_none_is_a_stranger(
        self, headers: list[tuple[bytes, bytes]]
    ) -> None:
        assert by_header().identify(headers, PROXY) is None

    def test_without_the_tenant_that_was_asked_for_it_is_a_stranger(self) -> None:
        named = by_header("header:X-User,X-Tenant")
        assert named.identify([(b"x-user", b"ann")], PROXY) is None

    def test_names_in_other_scripts_are_read(self) -> None:
        known = by_header().identify([(b"x-user", "Zoë".encode())], PROXY)
        assert known == HarnessIdentity("default", "Zoë")

    @given(user=st.text(max_size=12), tenant=st.text(max_size=12))
    def test_nobody_becomes_the_person_at_this_machine(self, user: str, tenant: str) -> None:
        named = by_header("header:X-User,X-Tenant")
        for who, where in ((user, tenant), ("local", "local"), ("local", " local ")):
            headers = [
                (b"x-user", who.encode(errors="replace")),
                (b"x-tenant", where.encode(errors="replace")),
            ]
            assert named.identify(headers, PROXY) != LOCAL_IDENTITY
        assert by_header().identify([(b"x-user", b"local")], PROXY) != LOCAL_IDENTITY


class TestAddresses:
    def test_they_may_be_networks_and_several(self) -> None:
        addresses = Addresses(["10.0.0.5, 10.1.0.0/16", "fd00::/8"])
        inside = ("10.0.0.5", "10.1.2.3", "fd12::1", "::ffff:10.0.0.5")
        assert all(address in addresses for address in inside)
        assert not any(address in addresses for address in ("10.0.0.6", "10.2.0.1", "fe80::1", "x"))

    def test_an_address_with_its_interface_is_that_address(self) -> None:
        assert "fe80::1%eth0" in Addresses(["fe80::1"])

    @pytest.mark.parametrize("text", ["proxy.example", "10.0.0.256", "10.0.0.5/8", "10.0.0.0/33"])
    def test_what_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigurationError, match="not the address of a proxy"):
            Addresses([text])

    @pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0"])
    def test_everybody_is_no_proxy(self, text: str) -> None:
        with pytest.raises(ConfigurationError, match="everybody"):
            Addresses([text])

    def test_loopback_is_found(self) -> None:
        assert is_loopback("127.0.0.1")
        assert not is_loopback("0.0.0.0")


class TestByAToken:
    def test_its_holder_is_known(self, tmp_path: Path) -> None:
        tokens = by_token(tmp_path)
        bob = HarnessIdentity("acme", "bob")
        assert tokens.identify([(b"authorization", f"Bearer {TOKEN}".encode())], None) == ANN
        assert tokens.identify([(b"authorization", f"bearer  {OTHER}".encode())], None) == bob
        assert (
            tokens.identify([(b"cookie", f"a=b; harness-web-token={OTHER}".encode())], None) == bob
        )

    def test_what_the_cookie_header_sets_is_what_is_read(self, tmp_path: Path) -> None:
        cookie = token_cookie(TOKEN, secure=True)
        assert (
            by_token(tmp_path).identify([(b"cookie", cookie.split(";")[0].encode())], None) == ANN
        )
        assert {"HttpOnly", "SameSite=Lax", "Secure"} <= set(cookie.split("; "))
        assert "Max-Age=0" in token_cookie("", secure=False)

    @pytest.mark.parametrize(
        "headers",
        [
            [],
            [(b"authorization", b"Bearer ")],
            [(b"authorization", b"Bearer wrong-token-of-some-length")],
            [(b"authorization", f"Basic {TOKEN}".encode())],
            [(b"authorization", TOKEN.encode())],
            [(b"authorization", f"Bearer {TOKEN}".encode())] * 2,
            [(b"authorization", b"Bearer no"), (b"cookie", f"harness-web-token={TOKEN}".encode())],
            [(b"cookie", f"harness-web-token={TOKEN}; harness-web-token={OTHER}".encode())],
            [(b"cookie", f"other={TOKEN}".encode())],
            [(b"authorization", b"Bearer \xff\xfe")],
        ],
    )
    def test_anything_else_is_a_stranger(
        self, tmp_path: Path, headers: list[tuple[bytes, bytes]]
    ) -> None:
        assert by_token(tmp_path).identify(headers, "127.0.0.1") is None

    def test_digests_stand_for_tokens_and_may_be_read_by_others(self, tmp_path: Path) -> None:
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        file = private(tmp_path / "tokens", f"# who\n\nsha256:{digest} ann\n", 0o644)
        tokens = read_identity(f"token:{file}")
        assert tokens.identify([(b"authorization", f"Bearer {TOKEN}".encode())], None) == ANN
        # The digest itself opens nothing.
        assert (
            tokens.identify([(b"authorization", f"Bearer sha256:{digest}".encode())], None) is None
        )

    @pytest.mark.parametrize(
        ("text", "mode", "said"),
        [
            (f"{TOKEN} ann\n", 0o640, "chmod 600"),
            (f"{TOKEN} ann\n", 0o606, "chmod 600"),
            (f"sha256:{'0' * 64} ann\n", 0o664, "changed by others"),
            ("", 0o600, "no token"),
            ("# nobody\n", 0o600, "no token"),
            ("short ann\n", 0o600, "line 1"),
            (f"{TOKEN}\n", 0o600, "line 1"),
            (f"{TOKEN} ann acme more\n", 0o600, "line 1"),
            (f"{TOKEN} ann\n{TOKEN} bob\n", 0o600, "line 2"),
            (f"{TOKEN} ann local\n", 0o600, "this machine's"),
            (f"{TOKEN} {'a' * 201}\n", 0o600, "line 1"),
            ("#" * 1_000_001, 0o600, "bytes"),
        ],
    )
    def test_a_file_that_is_not_as_it_must_be_is_refused_in_words_without_a_token(
        self, tmp_path: Path, text: str, mode: int, said: str
    ) -> None:
        file = private(tmp_path / "tokens", text, mode)
        with pytest.raises(ConfigurationError, match=said) as caught:
            read_identity(f"token:{file}")
        assert TOKEN not in caught.value.message

    def test_what_is_no_file_is_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa")
        for name, said in (("none", "not exist"), (".", "is no file"), ("pipe", "is no file")):
            with pytest.raises(ConfigurationError, match=said):
                read_identity(f"token:{tmp_path / name}")
        with pytest.raises(ConfigurationError, match="UTF-8"):
            read_identity(f"token:{tmp_path / 'bytes'}")

    @pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file of Linux")
    def test_a_file_whose_content_cannot_be_had_is_refused(self) -> None:
        """As of a file server that is gone."""
        with pytest.raises(ConfigurationError, match="cannot be read"):
            read_identity("token:/proc/self/mem")


class TestAFileThatChanges:
    @pytest.fixture
    def clock(self) -> list[float]:
        return [0.0]

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return private(tmp_path / "tokens", f"{TOKEN} ann\n")

    @pytest.fixture
    def tokens(self, path: Path, clock: list[float]) -> TokenFile:
        return TokenFile(path, lambda: clock[0])

    def test_a_change_counts_within_a_second(
        self, tokens: TokenFile, path: Path, clock: list[float]
    ) -> None:
        private(path, f"{OTHER} bob\n")
        clock[0] = 1.0
        assert tokens.holder(TOKEN) is None
        assert tokens.holder(OTHER) == ("bob", "")

    def test_a_file_that_is_half_written_changes_nothing_and_is_read_when_it_is_whole(
        self,
        tokens: TokenFile,
        path: Path,
        clock: list[float],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        private(path, f"{OTHER} bob\n{TOKEN[:10]}")
        clock[0] = 1.0
        with caplog.at_level(logging.ERROR):
            assert tokens.holder(TOKEN) == ("ann", "")
        assert "line 2" in caplog.text
        assert tokens.holder(OTHER) is None
        private(path, f"{OTHER} bob\n")
        clock[0] = 2.0
        assert tokens.holder(OTHER) == ("bob", "")

    def test_other_rights_are_noticed_too(
        self, tokens: TokenFile, path: Path, clock: list[float]
    ) -> None:
        private(path, f"{OTHER} bob\n", 0o644)
        clock[0] = 1.0
        assert tokens.holder(OTHER) is None
        path.chmod(0o600)
        clock[0] = 2.0
        assert tokens.holder(OTHER) == ("bob", "")

    def test_without_the_file_nobody_is_known_until_it_is_back(
        self, tokens: TokenFile, path: Path, clock: list[float]
    ) -> None:
        path.unlink()
        clock[0] = 1.0
        assert tokens.holder(TOKEN) is None
        private(path, f"{TOKEN} ann\n")
        clock[0] = 2.0
        assert tokens.holder(TOKEN) == ("ann", "")


@pytest.mark.parametrize(
    ("option", "proxies", "said"),
    [
        ("", [], "no way to know"),
        ("header", [PROXY], "no way to know"),
        ("header:", [PROXY], "no way to know"),
        ("token:", [], "no way to know"),
        ("password:x", [], "no way to know"),
        ("header:X-User", [], "everybody could send it"),
        ("header:X-User", [" , "], "everybody could send it"),
        ("header:X User", [PROXY], "no header"),
        ("header:Host", [PROXY], "no header"),
        ("header:Cookie", [PROXY], "no header"),
        ("header:X-User,", [PROXY], "no header"),
        ("header:X-User,x-user", [PROXY], "both"),
        ("header:A,B,C", [PROXY], "two headers"),
        ("token:/tmp/none", [PROXY], "no proxy"),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(
    option: str, proxies: list[str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_identity(option, proxies)
