"""A message as programs send it, with what they attach: texts, and data as base64."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator

from pydantic import Field

from web.chats.actions.uploads import GivenFile, judged, kept
from web.chats.chat import Chat
from web.chats.records.attachments import AttachmentLimits
from web.harness.values.errors import HarnessError
from web.harness.values.messages import AttachedBlock
from web.ui.api.shapes import Asked, RequestId
from web.ui.services import UiServices

MESSAGES = re.compile(r"/api/chats/[^/]+/messages")
"""The address that takes messages."""

_CHUNK_BYTES = 256 * 1024
_ESCAPED_BYTES = 6
"""Of a character in JSON, at most, but for the rare ones."""


def most_message_bytes(limits: AttachmentLimits) -> int:
    """How large a request with a message may be: all that it may carry, as JSON and base64."""
    texts = limits.max_count * limits.max_chars * _ESCAPED_BYTES
    return 4 * limits.max_pictures_bytes // 3 + texts + 2 * 1024 * 1024


class NewAttachment(Asked):
    """A file for the message, which also goes into the chat's folder: `text`, or `data`."""

    name: str = Field(min_length=1, max_length=1_000)
    text: str | None = None
    data: str | None = Field(None, description="Base64.")
    media_type: str | None = Field(
        None, max_length=200, description="For readers; what the data is, its bytes say."
    )


class NewMessage(Asked):
    text: str = Field("", description="May be empty where something is attached.")
    request_id: RequestId | None = Field(None, description="The same id again: the same run.")
    queue: bool = Field(False, description="Wait for the run under way; else it is refused.")
    model: str | None = Field(None, description="The model of the chat from this message on.")
    attachments: tuple[NewAttachment, ...] = Field((), strict=False)


async def taken_in(
    services: UiServices, chat: Chat, asked: NewMessage
) -> tuple[AttachedBlock, ...]:
    """What goes with the message; it is in the chat's folder then.

    Raises HarnessError for what is refused, and LimitExceeded for what is too much; nothing is
    written then. A message that was sent before brings nothing new.
    """
    if not asked.attachments or asked.request_id in chat.requests:
        return ()
    services.chats.check(asked.text, attached=True)
    limits, files = services.chats.limits.attachments, services.files(chat)
    found = []
    for each in asked.attachments:
        data = await asyncio.to_thread(_data, each)
        found.append(await judged(_given(each.name, data), limits, services.max_file_bytes))
    limits.check([file.called(file.name) for file in found])
    return tuple([file.called(await kept(files, file)) for file in found])


def _data(given: NewAttachment) -> bytes:
    if (given.text is None) == (given.data is None):
        raise HarnessError(
            f"The attachment '{given.name[:80]}' must have either text or data.",
            hint="Nothing was sent.",
            code="invalid_request",
        )
    if given.text is not None:
        return given.text.encode()
    try:
        return base64.b64decode(given.data or "", validate=True)
    except binascii.Error:
        raise HarnessError(
            f"The data of the attachment '{given.name[:80]}' is not base64.",
            hint="Nothing was sent.",
            code="invalid_request",
        ) from None


def _given(name: str, data: bytes) -> GivenFile:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(data), _CHUNK_BYTES):
            yield data[at : at + _CHUNK_BYTES]

    return GivenFile(name, len(data), chunks)
