"""Events in the formats of the two vendors, as bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_TOKEN_HEAD = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":'
)
_TOKEN_TAIL = b'},"finish_reason":null}]}\n\n'


def token(number: int) -> str:
    """The text of token `number` of a stream; a new line after every tenth."""
    return f"t{number}" + ("\n" if number % 10 == 9 else " ")


def token_event(text: str) -> bytes:
    """One chunk of a chat completion with this text; quick, for streams of many tokens."""
    return _TOKEN_HEAD + json.dumps(text).encode() + _TOKEN_TAIL


def http_chunk(data: bytes) -> bytes:
    """`data` as a chunk of the chunked transfer encoding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: Any, kind: str = "") -> bytes:
    """One server-sent event with `data` as JSON."""
    head = f"event: {kind}\n" if kind else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def chat_event(delta: Any = None, finish: str | None = None, **fields: Any) -> bytes:
    """One chunk of a chat completion."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields})


def chat_ending(finish: str = "stop", tokens: int = 1) -> list[bytes]:
    """How a chat completion ends: reason, usage, `[DONE]`."""
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    return [
        chat_event({}, finish),
        event({"choices": [], "usage": usage}),
        b"data: [DONE]\n\n",
    ]


def chat_events(*texts: str) -> bytes:
    """A whole chat completion that says these texts."""
    return b"".join([*(chat_event({"content": text}) for text in texts), *chat_ending()])


def message_events(events: Iterable[Mapping[str, Any]]) -> bytes:
    """A stream of the Messages API; every event is named after its type."""
    return b"".join(event(data, data["type"]) for data in events)
