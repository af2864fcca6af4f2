"""The decoder gives the same events however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from web.harness.providers.sse import MAX_EVENT_BYTES, SseDecoder, SseEvent


def decoded(*pieces: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.finish()


def reference(text: str) -> list[SseEvent]:
    """The standard's rules, one line at a time; the event that the end leaves open counts too."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events: list[SseEvent] = []
    kind = ""
    data: list[str] = []
    for line in [*text.split("\n"), ""]:
        if not line:
            if data:
                events.append(SseEvent(kind, "\n".join(data)))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            kind = value
        if name == "data":
            data.append(value)
    return events


STREAM = (
    '\ufeff: a comment\r\n\r\nevent: greeting\r\ndata: {"text": "grüß 👋 dich"}\r\n\r\n'
    "data:no space\n\ndata: two\ndata: lines\r\rid: 7\nretry: 10\ndata: last\u2028one\n\n\n"
    "data\n\n: ping\n\ndata: [DONE]"
)
EXPECTED = [
    SseEvent("greeting", '{"text": "grüß 👋 dich"}'),
    SseEvent("", "no space"),
    SseEvent("", "two\nlines"),
    SseEvent("", "last\u2028one"),
    SseEvent("", ""),
    SseEvent("", "[DONE]"),
]


def test_events_are_the_same_when_cut_at_any_two_bytes() -> None:
    data = STREAM.encode()
    for first in range(len(data) + 1):
        assert decoded(data[:first], data[first:]) == EXPECTED
        for second in range(first, len(data) + 1, 7):
            assert decoded(data[:first], data[first:second], data[second:]) == EXPECTED


def test_events_are_the_same_byte_by_byte() -> None:
    assert decoded(*(bytes([byte]) for byte in STREAM.encode())) == EXPECTED


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_event_is_given_out_as_soon_as_its_blank_line_is_there(end: str) -> None:
    decoder = SseDecoder()
    assert decoder.feed(f"data: one{end}".encode()) == []
    assert decoder.feed(end.encode()) == [SseEvent("", "one")]
    assert decoder.feed(f"data: two{end}{end}".encode()) == [SseEvent("", "two")]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    data = b"\xef\xbb\xbfdata: one\n\n"
    for cut in range(len(data)):
        assert decoded(data[:cut], data[cut:]) == [SseEvent("", "one")]


def test_bytes_that_are_no_utf8_do_not_stop_the_stream() -> None:
    assert decoded(b"data: \xff\xfe\n\ndata: next\n\n") == [
        SseEvent("", "\ufffd\ufffd"),
        SseEvent("", "next"),
    ]


def test_an_endless_event_is_refused() -> None:
    decoder = SseDecoder()
    piece = b"x" * (MAX_EVENT_BYTES // 4)
    for _ in range(4):
        decoder.feed(piece)
    with pytest.raises(ValueError, match="too large"):
        decoder.feed(piece)


WORDS = ["data", "event", ":", " ", "\r", "\n", "\r\n", "\n\n", "\ufeff", "é", "👋", "x"]


@given(
    st.lists(st.sampled_from(WORDS), max_size=40).map("".join),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_any_text_in_any_pieces_is_read_as_the_standard_says(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    assert decoded(*pieces) == reference(text)
