"""One answer of the Messages API, gathered from its stream of content blocks."""

from __future__ import annotations

import json
from typing import Any

from web.harness.providers.failures import Api, refusal
from web.harness.providers.streams import count, object_of, objects_of, text_of
from web.harness.values.messages import JsonObject, ToolUseBlock
from web.harness.values.model import (
    ModelChunk,
    ModelDone,
    StopReason,
    TextChunk,
    ThinkingChunk,
    ToolUseChunk,
    parse_arguments,
)
from web.harness.values.usage import Usage

_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}
"""All others end the turn: end_turn, stop_sequence, tool_use (told by the calls), and pause_turn,
which only tools that run at the provider cause."""


class _Call:
    """One call while its arguments come in."""

    def __init__(self, number: int, call_id: str, name: str) -> None:
        self.number = number
        self.id = call_id
        self.name = name
        self.arguments: list[str] = []


class MessageFold:
    """Event types and block types that are not known here are passed over."""

    def __init__(self, api: Api, model: str) -> None:
        self.complete = False
        self.closed = False
        self._api = api
        self._model = model
        self._reason: StopReason = "end_turn"
        self._counts: dict[str, int] = {}
        self._calls: list[_Call] = []
        self._open: dict[Any, _Call] = {}
        self._signatures: dict[Any, str] = {}

    def take(self, data: JsonObject, out: list[ModelChunk]) -> None:
        kind = data.get("type")
        if kind == "content_block_delta":
            self._delta(data.get("index"), object_of(data.get("delta")), out)
        elif kind == "content_block_start":
            self._start(data.get("index"), object_of(data.get("content_block")), out)
        elif kind == "content_block_stop":
            self._stop(data.get("index"), out)
        elif kind == "message_start":
            self._count(object_of(data.get("message")).get("usage"))
        elif kind == "message_delta":
            self._count(data.get("usage"))
            self._finish(object_of(data.get("delta")).get("stop_reason"), out)
        elif kind == "message_stop":
            self._seal(out)
            self.complete = self.closed = True
        elif kind == "error" or data.get("error"):
            raise refusal(self._api, self._model, data)

    def take_whole(self, data: JsonObject, out: list[ModelChunk]) -> None:
        """A message that a server sent at once although a stream was asked for."""
        if "content" not in data:
            raise refusal(self._api, self._model, data)
        for index, block in enumerate(objects_of(data["content"])):
            self._start(index, block, out)
            self._stop(index, out)
        self._count(data.get("usage"))
        self._finish(data.get("stop_reason"), out)
        self.complete = True

    def done(self) -> ModelDone:
        calls = tuple(_block(call) for call in self._calls)
        reason = self._reason
        if reason == "end_turn" and calls:
            reason = "tool_use"
        read = self._counts.get("cache_read_input_tokens", 0)
        created = self._counts.get("cache_creation_input_tokens", 0)
        usage = Usage(
            # The API counts cached input apart from the rest.
            input_tokens=self._counts.get("input_tokens", 0) + read + created,
            output_tokens=self._counts.get("output_tokens", 0),
            cache_read_input_tokens=read,
            cache_creation_input_tokens=created,
            thinking_tokens=self._counts.get("thinking_tokens", 0),
        )
        return ModelDone(reason, usage, calls)

    def _start(self, index: Any, block: JsonObject, out: list[ModelChunk]) -> None:
        kind = block.get("type")
        if kind == "text":
            if text_of(block.get("text")):
                out.append(TextChunk(block["text"]))
        elif kind == "thinking":
            if text_of(block.get("thinking")):
                out.append(ThinkingChunk(block["thinking"]))
            self._sign(index, block.get("signature"))
        elif kind == "redacted_thinking":
            out.append(ThinkingChunk("", text_of(block.get("data")), redacted=True))
        elif kind == "tool_use":
            call = _Call(len(self._calls), text_of(block.get("id")), text_of(block.get("name")))
            self._calls.append(call)
            self._open[index] = call
            # An empty object stands here while the real input is about to come in pieces.
            whole = block.get("input")
            text = json.dumps(whole, ensure_ascii=False) if whole else ""
            self._add(call, text, out)

    def _delta(self, index: Any, delta: JsonObject, out: list[ModelChunk]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            if text_of(delta.get("text")):
                out.append(TextChunk(delta["text"]))
        elif kind == "thinking_delta":
            if text_of(delta.get("thinking")):
                out.append(ThinkingChunk(delta["thinking"]))
        elif kind == "signature_delta":
            self._sign(index, delta.get("signature"))
        elif kind == "input_json_delta":
            call = self._open.get(index)
            text = text_of(delta.get("partial_json"))
            if call is not None and text:
                self._add(call, text, out)

    def _stop(self, index: Any, out: list[ModelChunk]) -> None:
        self._open.pop(index, None)
        signature = self._signatures.pop(index, None)
        if signature:
            out.append(ThinkingChunk("", signature))

    def _sign(self, index: Any, signature: Any) -> None:
        self._signatures[index] = self._signatures.get(index, "") + text_of(signature)

    def _seal(self, out: list[ModelChunk]) -> None:
        """Ends thinking blocks whose own end a server left out."""
        for index in list(self._signatures):
            self._stop(index, out)

    def _finish(self, reason: Any, out: list[ModelChunk]) -> None:
        if isinstance(reason, str) and reason:
            self._seal(out)
            self.complete = True
            self._reason = _STOP_REASONS.get(reason, "end_turn")

    def _count(self, usage: Any) -> None:
        """Later counts replace earlier ones: they are totals."""
        usage = object_of(usage)
        details = object_of(usage.get("output_tokens_details"))
        for name, value in (*usage.items(), *details.items()):
            if isinstance(value, (int, float)):
                self._counts[name] = count(value)

    @staticmethod
    def _add(call: _Call, text: str, out: list[ModelChunk]) -> None:
        if text:
            call.arguments.append(text)
        out.append(ToolUseChunk(call.number, call.id, call.name, text))


def _block(call: _Call) -> ToolUseBlock:
    arguments, malformed = parse_arguments("".join(call.arguments))
    return ToolUseBlock(call.id, call.name, arguments, malformed)
