"""A JSON document as the body of a request, with binary data written as base64 on the way.

A conversation with pictures has tens of megabytes. Made in one go, its JSON would hold up everybody
else for a tenth of a second and lie in memory twice.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from base64 import b64encode
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from web.harness.values.messages import JsonObject

_SLICE_BYTES = 3 * 64 * 1024
"""Of three bytes base64 makes four characters: a slice leaves no rest."""


@dataclass(frozen=True, slots=True)
class Base64:
    """A text in a document: `prefix`, which needs no escapes, and then `data` as base64."""

    data: bytes = field(repr=False)
    prefix: str = ""

    @property
    def length(self) -> int:
        return len(self.prefix) + 4 * -(-len(self.data) // 3)


class Payload:
    """`document` as JSON in UTF-8; its texts may be `Base64`. `length` is in bytes."""

    def __init__(self, document: JsonObject) -> None:
        self._data: list[Base64] = []
        # Nobody can write it into a message beforehand.
        self._mark = secrets.token_hex(16)
        text = json.dumps(
            document, ensure_ascii=False, separators=(",", ":"), default=self._set_aside
        )
        # Text from tools may hold half a surrogate pair, which no encoder takes as it is.
        self._pieces = [piece.encode("utf-8", "replace") for piece in text.split(self._mark)]
        self.length = sum(map(len, self._pieces)) + sum(each.length for each in self._data)

    @property
    def has_data(self) -> bool:
        """Whether there is any base64 in it."""
        return bool(self._data)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, a piece at a time; others are let have the event loop in between."""
        yield self._pieces[0]
        for each, piece in zip(self._data, self._pieces[1:], strict=True):
            yield each.prefix.encode()
            for start in range(0, len(each.data), _SLICE_BYTES):
                yield b64encode(each.data[start : start + _SLICE_BYTES])
                await asyncio.sleep(0)
            yield piece

    def _set_aside(self, value: Any) -> str:
        if not isinstance(value, Base64):
            raise TypeError(f"{type(value).__name__} is not JSON")
        self._data.append(value)
        return self._mark
