"""Binary data of tools is kept by content, up to limits, and links are told by their host."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from web.chats.parts.links import web_host
from web.chats.records.blobs import InMemoryBlobs, StoredBlobs
from web.chats.tasks import TaskOwner
from web.harness.sessions import records
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.tools.tool import Blob
from web.harness.values.errors import StoreError


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


class FailingBlobs(records.InMemoryBlobs):
    """A store that does not work for the first few times; `kept` is set once something is in it."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.kept = asyncio.Event()

    async def keep(
        self, identity: HarnessIdentity, session_id: str, blob: records.KeptBlob
    ) -> bool:
        if self.failures:
            self.failures -= 1
            raise StoreError("The disk is full.", code="store_full")
        self.kept.set()
        return await super().keep(identity, session_id, blob)


@pytest.mark.anyio
async def test_what_could_not_be_stored_is_stored_once_the_store_works_again() -> None:
    stored, picture = FailingBlobs(failures=2), blob(b"picture")
    async with asyncio.timeout(10), TaskOwner() as tasks:
        store = StoredBlobs(stored, LOCAL_IDENTITY, "chat", tasks, again_seconds=0)
        assert store.keep(picture)
        assert not store.is_stored
        await stored.kept.wait()
        await store.flush()
        assert store.is_stored
        assert await stored.get(LOCAL_IDENTITY, "chat", picture.sha256) is not None


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
