"""Forms as they come in: texts as they were typed, of any length."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest
from hypothesis import given, strategies as st
from starlette.requests import Request

from tests.support.loop_share import loop_share
from web.ui.form_data import _PIECE_CHARS, _text, fields_of, read_form

pytestmark = pytest.mark.anyio

BOUNDARY = "a-boundary"


def request_with(body: bytes, kind: str) -> Request:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers, "state": {}}, receive)


def multipart(**fields: str) -> Request:
    parts = "".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    )
    body = f"{parts}--{BOUNDARY}--\r\n".encode()
    return request_with(body, f"multipart/form-data; boundary={BOUNDARY}")


async def fields(request: Request) -> dict[str, str]:
    async with read_form(request, max_files=0) as form:
        return fields_of(request, form)


@pytest.mark.parametrize("start", range(_PIECE_CHARS - 3, _PIECE_CHARS + 2))
async def test_line_ends_are_as_they_were_typed_wherever_they_stand(start: int) -> None:
    text = "x" * start + "\r\n\r\ny\rz"
    wanted = {"text": "x" * start + "\n\ny\rz", "other": "\n"}
    assert await fields(multipart(text=text, other="\r\n")) == wanted
    body = f"text={quote_plus(text)}&other=%0D%0A".encode()
    assert await fields(request_with(body, "application/x-www-form-urlencoded")) == wanted


async def test_of_a_field_that_comes_twice_the_last_counts_and_all_are_kept() -> None:
    request = request_with(b"a=1&a=2", "application/x-www-form-urlencoded")
    assert await fields(request) == {"a": "2"}
    assert request.state.every == {"a": ["1", "2"]}


@given(st.text(st.sampled_from("a\r\n\ud83d\ude00"), max_size=8), st.integers(0, 8))
def test_a_long_text_is_read_as_a_short_one_is(middle: str, before: int) -> None:
    start = "x" * (_PIECE_CHARS - before)
    assert _text(start + middle) == start + _text("x" + middle)[1:]


async def test_a_very_long_text_is_read_beside_the_event_loop() -> None:
    request = multipart(text="\r\n" * 3_000_000)
    async with read_form(request, max_files=0) as form:
        assert len(str(form["text"])) == 3_000_000
    async with loop_share() as share:
        fields_of(request, form)
    assert share.in_loop < 0.02
