"""Where a response body ends, however its bytes are cut."""

from __future__ import annotations

import pytest

from web.harness.providers.body import ChunkedBody, OpenBody, SizedBody, body_of

CHUNKED = b"5\r\nhello\r\nA;name=value\r\n, 12345678\r\n1\r\n!\r\n0\r\n\r\n"
WHOLE = b"hello, 12345678!"


def test_chunks_are_joined_when_cut_at_any_two_bytes() -> None:
    for first in range(len(CHUNKED) + 1):
        for second in range(first, len(CHUNKED) + 1):
            body = ChunkedBody()
            pieces = (CHUNKED[:first], CHUNKED[first:second], CHUNKED[second:])
            assert b"".join(body.feed(piece) for piece in pieces) == WHOLE
            assert body.ended


def test_all_chunks_of_one_read_come_as_one_piece() -> None:
    assert ChunkedBody().feed(CHUNKED) == WHOLE


@pytest.mark.parametrize("size", [b"zz", b"-5", b"x" * 5000])
def test_a_chunk_without_a_real_size_is_refused(size: bytes) -> None:
    with pytest.raises(ValueError, match=r"size|int"):
        ChunkedBody().feed(size + (b"\r\n" if len(size) < 10 else b""))


def test_what_follows_a_sized_body_is_not_part_of_it() -> None:
    body = SizedBody(4)
    assert (body.feed(b"abc"), body.ended) == (b"abc", False)
    assert (body.feed(b"defg"), body.ended) == (b"d", True)


def test_the_headers_decide() -> None:
    assert isinstance(body_of({"transfer-encoding": "Chunked"}), ChunkedBody)
    assert isinstance(body_of({"content-length": "3"}), SizedBody)
    assert isinstance(body_of({}), OpenBody)
    assert body_of({"content-length": "0"}).ended
