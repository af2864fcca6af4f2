"""Anthropic's Messages API."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx

from web.harness.providers.anthropic_fold import MessageFold
from web.harness.providers.failures import Api
from web.harness.providers.http import Requests
from web.harness.providers.payload import Base64
from web.harness.providers.pictures import PictureLimits, fitted, picture_type
from web.harness.providers.streams import stream_answer
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelChunk, ModelRequest, NoteChunk, ToolSpec

VENDOR_HOST = "api.anthropic.com"
API_VERSION = "2023-06-01"

PICTURE_LIMITS = PictureLimits(max_bytes=5 * 1024 * 1024 * 3 // 4, max_side=8_000)
"""5 MB is of the base64 (`image exceeds 5 MB maximum: ... bytes > 5242880 bytes`); the vendor's own
address takes 10 MB by now, its models elsewhere do not. Source: its page "Vision"."""

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicProvider:
    """Streams from `{base_url}/v1/messages`; a base URL may end in /v1 or not.

    `tls` replaces the trust store of this machine.
    """

    def __init__(self, api: Api, base_url: httpx.URL, *, tls: ssl.SSLContext | None = None) -> None:
        path = base_url.path.rstrip("/")
        if not path.endswith("/messages"):
            path = path.removesuffix("/v1") + "/v1/messages"
        headers = {"anthropic-version": API_VERSION}
        if api.key:
            headers["x-api-key"] = api.key
        self._api = api
        self._requests = Requests(api, base_url.copy_with(path=path), headers, tls)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        fit = fitted(request, PICTURE_LIMITS)
        if fit.left_out:
            yield [NoteChunk(words) for words in fit.left_out]
        document = _document(fit.request)
        fold = MessageFold(self._api, request.model)
        async for chunks in stream_answer(self._requests, request, document, fold):
            yield chunks

    async def aclose(self) -> None:
        await self._requests.aclose()


def _document(request: ModelRequest) -> dict[str, Any]:
    document: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": _wire_messages(request.messages),
        "stream": True,
    }
    if request.system_prompt.strip():
        document["system"] = request.system_prompt
    if request.temperature is not None:
        document["temperature"] = request.temperature
    if request.tools:
        document["tools"] = [_wire_tool(tool) for tool in request.tools]
    return document


def _wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The API knows two roles, wants them in turn and refuses a message without content."""
    wire: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        content = _wire_content(message)
        if not content:
            continue
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"].extend(content)
        else:
            wire.append({"role": role, "content": content})
    return wire


def _wire_content(message: Message) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ImageBlock) and block.name and not block.left_out:
            # So that the person's words can speak of it.
            content.append({"type": "text", "text": block.line})
        item = _wire_block(block)
        if item is not None:
            content.append(item)
    return content


def _wire_block(block: ContentBlock) -> dict[str, Any] | None:
    """A block in the API's form, None for one that the API would refuse."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case ThinkingBlock(signature=None):
            # Thought by another provider's model; without a seal it is not accepted.
            return None
        case ThinkingBlock(redacted=True):
            return {"type": "redacted_thinking", "data": block.signature}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case ToolUseBlock():
            arguments = block.arguments
            if block.malformed is not None:
                arguments = {"malformed_arguments": block.malformed}
            return {
                "type": "tool_use",
                "id": _wire_id(block.id),
                "name": block.name,
                "input": arguments,
            }
        case ToolResultBlock():
            return _wire_result(block)
        case ResourceBlock():
            return {"type": "text", "text": block.framed}
        case ImageBlock():
            return _wire_picture(block)


def _wire_picture(picture: ImageBlock) -> dict[str, Any]:
    if picture.left_out:
        return {"type": "text", "text": picture.line}
    source = {"type": "base64", "media_type": picture_type(picture), "data": Base64(picture.data)}
    return {"type": "image", "source": source}


def _wire_result(block: ToolResultBlock) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": _wire_id(block.call_id)}
    content = [item for part in block.content if (item := _wire_block(part)) is not None]
    if content:
        wire["content"] = content
    if block.is_error:
        wire["is_error"] = True
    return wire


def _wire_id(call_id: str) -> str:
    """Ids of other providers may hold characters that this API refuses."""
    return _NOT_IN_IDS.sub("_", call_id)


def _wire_tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
