"""A document with binary data becomes the same JSON as in one go, a small piece at a time."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from web.harness.providers.payload import Base64, Payload

pytestmark = pytest.mark.anyio

MAX_PIECE = 256 * 1024


async def body(document: dict[str, Any]) -> bytes:
    payload = Payload(document)
    whole = b"".join([piece async for piece in payload.chunks()])
    assert payload.length == len(whole)
    return whole


@pytest.mark.parametrize("size", [0, 1, 2, 3, 196_607, 196_608, 196_609, 1_000_000])
async def test_data_is_base64_where_it_stood(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    document = {"a": ["é \ud83d", Base64(data, "data:image/png;base64,")], "b": Base64(data)}
    found = json.loads(await body(document))
    text = base64.b64encode(data).decode()
    assert found == {"a": ["é ?", f"data:image/png;base64,{text}"], "b": text}


async def test_a_document_without_data_is_plain_json() -> None:
    assert await body({"a": [1, None, "ü"]}) == '{"a":[1,null,"ü"]}'.encode()
    assert not Payload({"a": 1}).has_data
    assert Payload({"a": Base64(b"")}).has_data
    with pytest.raises(TypeError):
        Payload({"a": object()})


async def test_megabytes_are_written_in_pieces_and_others_run_in_between() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    sizes = [len(piece) async for piece in Payload({"a": Base64(bytes(5_000_000))}).chunks()]
    counting.cancel()
    assert max(sizes) <= MAX_PIECE
    assert turns >= len(sizes) - 4
