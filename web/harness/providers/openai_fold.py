"""One answer of the Chat Completions API, gathered from what its stream brings."""

from __future__ import annotations

import json
from typing import Any

from web.harness.providers.failures import Api, broken_stream, refusal
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
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}


class ChatCompletionFold:
    """Tolerates what compatible servers leave out, null or send in one piece."""

    def __init__(self, api: Api, model: str) -> None:
        self.complete = False
        self.closed = False
        self._api = api
        self._model = model
        self._reason: StopReason = "end_turn"
        self._usage = Usage()
        self._calls = _Calls()

    def take(self, data: JsonObject, out: list[ModelChunk]) -> None:
        self._take(data, "delta", out)

    def take_whole(self, data: JsonObject, out: list[ModelChunk]) -> None:
        """A completion that a server sent at once although a stream was asked for."""
        if "choices" not in data and "error" not in data:
            data = {"error": data}
        self._take(data, "message", out)
        self.complete = True

    def done(self) -> ModelDone:
        calls = self._calls.finished()
        reason = self._reason
        if reason == "end_turn" and calls:
            reason = "tool_use"
        return ModelDone(reason, self._usage, calls)

    def _take(self, data: JsonObject, part: str, out: list[ModelChunk]) -> None:
        if data.get("error"):
            raise refusal(self._api, self._model, data)
        if data.get("usage"):
            self._usage = _usage(object_of(data["usage"]))
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        choice = choices[0]
        delta = choice.get(part) or choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._take_delta(delta, out)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish(reason.lower(), choice)

    def _take_delta(self, delta: JsonObject, out: list[ModelChunk]) -> None:
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if thinking and isinstance(thinking, str):
            out.append(ThinkingChunk(thinking))
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                out.append(TextChunk(content))
            else:
                _take_parts(content, out)
        declined = delta.get("refusal")
        if declined and isinstance(declined, str):
            out.append(TextChunk(declined))
            self._reason = "refusal"
        if delta.get("tool_calls"):
            self._calls.take(objects_of(delta["tool_calls"]), out)
        elif delta.get("function_call"):
            self._calls.take([{"index": 0, "function": delta["function_call"]}], out)

    def _finish(self, reason: str, choice: JsonObject) -> None:
        if reason == "error":
            if choice.get("error"):
                raise refusal(self._api, self._model, choice)
            raise broken_stream(self._api, "the server reports an error")
        self.complete = True
        self._reason = _STOP_REASONS.get(reason, self._reason)


def _take_parts(content: Any, out: list[ModelChunk]) -> None:
    """Content as a list of parts, as some servers send it."""
    for part in objects_of(content):
        kind = part.get("type")
        if kind == "text" and text_of(part.get("text")):
            out.append(TextChunk(part["text"]))
        elif kind == "thinking":
            inner = part.get("thinking")
            pieces = [text_of(item.get("text")) for item in objects_of(inner)]
            text = text_of(inner) or "".join(pieces)
            if text:
                out.append(ThinkingChunk(text))


class _Call:
    """One call while its fragments come in."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON document of their own."""
        try:
            json.loads(self.text)
        except (ValueError, RecursionError):
            return False
        return True


class _Calls:
    """The calls of one answer, and which of them a fragment belongs to."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, int] = {}

    def take(self, fragments: list[JsonObject], out: list[ModelChunk]) -> None:
        for place, fragment in enumerate(fragments):
            function = object_of(fragment.get("function"))
            call_id, name = text_of(fragment.get("id")), text_of(function.get("name"))
            number = self._find(fragment.get("index"), call_id, name, first=place == 0)
            call = self._calls[number]
            call.id = call.id or call_id
            call.name = call.name or name
            arguments = function.get("arguments")
            if isinstance(arguments, dict):
                arguments = json.dumps(arguments, ensure_ascii=False)
            piece = text_of(arguments)
            if piece:
                call.arguments.append(piece)
            out.append(ToolUseChunk(number, call.id, call.name, piece))

    def finished(self) -> tuple[ToolUseBlock, ...]:
        blocks = []
        for call in self._calls:
            if call.name or call.arguments:
                arguments, malformed = parse_arguments(call.text)
                blocks.append(ToolUseBlock(call.id, call.name, arguments, malformed))
        return tuple(blocks)

    def _find(self, index: Any, call_id: str, name: str, *, first: bool) -> int:
        """The number of the call a fragment belongs to; a new one where it starts a call."""
        if isinstance(index, int):
            number = self._by_index.get(index)
            # Some servers give every call the index 0: a new id with a name is a new call.
            if number is None or (name and self._is_other(number, call_id)):
                number = self._by_index[index] = self._new()
            return number
        if not self._calls:
            return self._new()
        last = len(self._calls) - 1
        if call_id:
            known = [number for number, call in enumerate(self._calls) if call.id == call_id]
            return known[0] if known else self._new()
        if not name:
            return last
        # A name without id or index: a call of its own, unless a server repeats the name with
        # each piece of the arguments.
        repeated = first and self._calls[last].name == name and not self._calls[last].is_whole
        return last if repeated else self._new()

    def _is_other(self, number: int, call_id: str) -> bool:
        known = self._calls[number].id
        return bool(call_id and known and call_id != known)

    def _new(self) -> int:
        self._calls.append(_Call())
        return len(self._calls) - 1


def _usage(data: JsonObject) -> Usage:
    prompt = object_of(data.get("prompt_tokens_details"))
    completion = object_of(data.get("completion_tokens_details"))
    cached = prompt.get("cached_tokens") or data.get("prompt_cache_hit_tokens")
    return Usage(
        input_tokens=count(data.get("prompt_tokens")),
        output_tokens=count(data.get("completion_tokens")),
        cache_read_input_tokens=count(cached),
        thinking_tokens=count(completion.get("reasoning_tokens")),
    )
