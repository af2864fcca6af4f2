"""Binary data of tools is kept by content, up to limits, and links are told by their host."""

from __future__ import annotations

import hashlib

import pytest

from web.chats.blobs import InMemoryBlobs
from web.chats.links import web_host
from web.harness.tools.tool import Blob


def blob(content: bytes) -> Blob:
    return Blob(hashlib.sha256(content).hexdigest(), "image/png", content)


def test_what_is_kept_is_found_by_its_content() -> None:
    store, one = InMemoryBlobs(), blob(b"one")
    assert store.keep(one)
    assert store.get(one.sha256) == one
    assert store.get("0" * 64) is None


def test_the_oldest_goes_where_there_is_no_room() -> None:
    store = InMemoryBlobs(max_bytes=10, max_blob_bytes=6)
    a, b, c = blob(b"aaaa"), blob(b"bbbb"), blob(b"cccc")
    for each in (a, b, a, a, c):
        assert store.keep(each)
    assert store.get(b.sha256) is None
    assert store.get(a.sha256) == a
    assert store.get(c.sha256) == c


def test_one_that_is_too_large_is_refused_and_costs_no_other_its_place() -> None:
    store = InMemoryBlobs(max_bytes=10, max_blob_bytes=6)
    small = blob(b"small")
    assert store.keep(small)
    assert not store.keep(blob(b"too large"))
    assert store.get(small.sha256) == small


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://example.org/a?b#c", "example.org"),
        ("HTTP://Example.org:8080", "example.org:8080"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://[::1]:80/x", "[::1]:80"),
        ("https://good.example@evil.example/", ""),
        ("https://good.example\\@evil.example/", ""),
        ("https:///nohost", ""),
        ("https://a b.example", ""),
        ("https://a.example\n", ""),
        ("https://a.example:99999/", ""),
        ("https://" + "a" * 100 + ".example", ""),
        ("https://[x/", ""),
        ("javascript:alert(1)//https://a.example", ""),
        ("data:text/html,x", ""),
        ("file:///etc/passwd", ""),
        ("//a.example/x", ""),
        ("demo://resource/1", ""),
        ("", ""),
    ],
)
def test_only_plain_web_addresses_have_a_host(address: str, host: str) -> None:
    assert web_host(address) == host
