"""OpenAI's Chat Completions API, and the many servers that speak it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import httpx

from web.harness.providers.failures import Api
from web.harness.providers.http import Requests
from web.harness.providers.openai_fold import ChatCompletionFold
from web.harness.providers.payload import Base64
from web.harness.providers.pictures import PictureLimits, fitted, picture_type
from web.harness.providers.streams import stream_answer
from web.harness.values.messages import ImageBlock, Message, ToolResultBlock, ToolUseBlock
from web.harness.values.model import ModelChunk, ModelRequest, NoteChunk, ToolSpec

VENDOR_HOST = "api.openai.com"

PICTURE_LIMITS = PictureLimits(max_bytes=20 * 1024 * 1024)
"""The vendor's long-standing limit of one picture; it makes large ones smaller by itself."""


class OpenAIProvider:
    """Streams from `{base_url}/chat/completions`. Without a key, no Authorization is sent.

    `tls` replaces the trust store of this machine.
    """

    def __init__(self, api: Api, base_url: httpx.URL, *, tls: ssl.SSLContext | None = None) -> None:
        path = base_url.path.rstrip("/")
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        headers = {"authorization": f"Bearer {api.key}"} if api.key else {}
        self._api = api
        self._requests = Requests(api, base_url.copy_with(path=path), headers, tls)
        # OpenAI's newer models refuse max_tokens, most other servers know nothing else.
        vendor = base_url.host == VENDOR_HOST
        self._limit_name = "max_completion_tokens" if vendor else "max_tokens"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        fit = fitted(request, PICTURE_LIMITS)
        if fit.left_out:
            yield [NoteChunk(words) for words in fit.left_out]
        document = self.document(fit.request)
        fold = ChatCompletionFold(self._api, request.model)
        async for chunks in stream_answer(self._requests, request, document, fold):
            yield chunks

    async def aclose(self) -> None:
        await self._requests.aclose()

    def document(self, request: ModelRequest) -> dict[str, Any]:
        """The request in the API's form."""
        messages: list[dict[str, Any]] = []
        if request.system_prompt:
            messages.append({"role": "system", "content": request.system_prompt})
        names: dict[str, str] = {}
        for message in request.messages:
            names.update((call.id, call.name) for call in message.tool_uses)
            messages.extend(_wire_messages(message, names))
        document: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            self._limit_name: request.max_tokens,
        }
        if request.temperature is not None:
            document["temperature"] = request.temperature
        if request.tools:
            document["tools"] = [_wire_tool(tool) for tool in request.tools]
        return document


def _wire_messages(message: Message, names: dict[str, str]) -> list[dict[str, Any]]:
    """A message in the API's form; each tool result is a message of its own there.

    `names` are those of the tools by call id.
    """
    if message.role == "tool":
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        return [*map(_wire_result, results), *_pictures_of_results(results, names)]
    wire: dict[str, Any] = {"role": message.role, "content": _wire_content(message)}
    if message.tool_uses:
        wire["content"] = message.text or None
        wire["tool_calls"] = [_wire_call(call) for call in message.tool_uses]
    return [wire]


def _wire_content(message: Message) -> str | list[dict[str, Any]]:
    """One text, or where there are pictures a list of parts: what is attached, then the message."""
    parts: list[dict[str, Any]] = []
    texts = [block.framed for block in message.attachments]
    for picture in message.pictures:
        # So that the person's words can speak of it.
        if picture.left_out or picture.name:
            texts.append(picture.line)
        if not picture.left_out:
            parts += [*_wire_text(texts), _wire_picture(picture)]
            texts = []
    if message.text or not texts:
        texts.append(message.text)
    # Many servers of this API take no list of texts here.
    return [*parts, *_wire_text(texts)] if parts else "\n\n".join(texts)


def _wire_text(texts: list[str]) -> list[dict[str, Any]]:
    text = "\n\n".join(texts)
    return [{"type": "text", "text": text}] if text.strip() else []


def _wire_picture(picture: ImageBlock) -> dict[str, Any]:
    address = Base64(picture.data, f"data:{picture_type(picture)};base64,")
    return {"type": "image_url", "image_url": {"url": address}}


def _pictures_of_results(
    results: list[ToolResultBlock], names: dict[str, str]
) -> list[dict[str, Any]]:
    """The pictures of a round of results in one message after it.

    The API takes them in a user's message only, and wants all results of a round in a row. So the
    message says which call each is of, and that it is not the person who speaks.
    """
    parts: list[dict[str, Any]] = []
    for result in results:
        pictures = [picture for picture in result.pictures if not picture.left_out]
        if pictures:
            name = names.get(result.call_id, "a tool")
            words = f"[From the result of {name} (call {result.call_id}), not from the person:]"
            parts += [*_wire_text([words]), *map(_wire_picture, pictures)]
    return [{"role": "user", "content": parts}] if parts else []


def _wire_call(call: ToolUseBlock) -> dict[str, Any]:
    arguments = call.arguments
    if call.malformed is not None:
        # Several servers refuse a request whose history holds arguments that are no JSON object.
        arguments = {"malformed_arguments": call.malformed}
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _wire_result(block: ToolResultBlock) -> dict[str, Any]:
    lines = [picture.line for picture in block.pictures if picture.left_out]
    text = "\n".join([*([block.text] if block.text else []), *lines])
    if not text and block.pictures:
        text = "[The result is in the next message.]"
    if block.is_error and not text.lower().startswith("error"):
        # The API has no field for a failed call.
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": block.call_id, "content": text}


def _wire_tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    }
