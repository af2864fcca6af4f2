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
from web.harness.providers.streams import stream_answer
from web.harness.values.messages import Message, ToolResultBlock, ToolUseBlock
from web.harness.values.model import ModelChunk, ModelRequest, ToolSpec

VENDOR_HOST = "api.openai.com"


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
        document = self.document(request)
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
        for message in request.messages:
            messages.extend(_wire_messages(message))
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


def _wire_messages(message: Message) -> list[dict[str, Any]]:
    """A message in the API's form; each tool result is a message of its own there."""
    if message.role == "tool":
        return [
            _wire_result(block) for block in message.content if isinstance(block, ToolResultBlock)
        ]
    wire: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_uses:
        wire["content"] = message.text or None
        wire["tool_calls"] = [_wire_call(call) for call in message.tool_uses]
    return [wire]


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
    text = block.text
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
