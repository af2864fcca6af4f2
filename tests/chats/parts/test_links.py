"""Addresses of strangers: shown whole, with the host that the browser will ask, opened if safe."""

from __future__ import annotations

import pytest

from web.chats.parts.links import MAX_ADDRESS_CHARS, shown_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("https://a.example", ("https://", "a.example", "")),
        ("https://a.example:8443/b?c=d#e", ("https://", "a.example:8443", "/b?c=d#e")),
        ("https://a.example//evil.example/x", ("https://", "a.example", "//evil.example/x")),
        ("https://A.Example/@b", ("https://", "a.example", "/@b")),
        ("http://127.0.0.1:80/x", ("http://", "127.0.0.1:80", "/x")),
        ("http://[::1]:80/x", ("http://", "[::1]:80", "/x")),
        ("http://localhost", ("http://", "localhost", "")),
    ],
)
def test_an_address_is_shown_whole(address: str, parts: tuple[str, str, str]) -> None:
    shown = shown_address(address)
    assert (shown.before, shown.host, shown.after) == parts
    assert (shown.opens, shown.foreign) == (True, False)
    assert shown.whole.lower() == address.lower()


@pytest.mark.parametrize("address", ["https://bänk.example/", "https://xn--bnk-qla.example/"])
def test_letters_that_may_look_like_others_are_told(address: str) -> None:
    shown = shown_address(address)
    assert (shown.host, shown.foreign) == ("xn--bnk-qla.example", True)
    assert shown.whole == "https://xn--bnk-qla.example/"


@pytest.mark.parametrize(
    "address",
    [
        "http://a.example/",
        "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/",
        "https://good.example@evil.example/",
        "https://evil.example\\@good.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//a.example",
        "https://",
        "https://a.example/ b",
        "https://a.example:x/",
        "https://[::1/",
        "",
        "https://a.example/" + "b" * MAX_ADDRESS_CHARS,
    ],
)
def test_what_is_not_safe_is_not_opened(address: str) -> None:
    shown = shown_address(address)
    assert not shown.opens
    assert shown.whole == address[:MAX_ADDRESS_CHARS]
