"""The Messages API over a port: blocks, seals, usage, errors, and what is sent back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.asking import Gathered, asked, gather, outcome
from tests.support.model_server import ModelServer, Reply, cut, sse, status
from tests.support.model_wire import message_events
from web.harness.providers import make_provider
from web.harness.values.errors import ProviderError
from web.harness.values.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelRequest, ThinkingChunk, ToolSpec
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio


def start(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **fields},
    }


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def opening(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"role": "assistant", "usage": usage}}


def ending(reason: str = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


FULL = [
    opening(
        input_tokens=10,
        cache_creation_input_tokens=100,
        cache_read_input_tokens=1000,
        output_tokens=1,
    ),
    {"type": "ping"},
    start(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see."),
    delta(0, "signature_delta", signature="sea"),
    delta(0, "signature_delta", signature="led"),
    stop(0),
    start(1, "redacted_thinking", data="hidden"),
    stop(1),
    start(2, "text", text=""),
    delta(2, "text_delta", text="Grüß "),
    delta(2, "citations_delta", citation={}),
    delta(2, "text_delta", text="dich 👋"),
    stop(2),
    {"type": "something_new", "index": 9},
    start(3, "tool_use", id="t1", name="add", input={}),
    delta(3, "input_json_delta", partial_json=""),
    delta(3, "input_json_delta", partial_json='{"x": '),
    delta(3, "input_json_delta", partial_json='"é"}'),
    stop(3),
    start(4, "tool_use", id="t2", name="now", input={}),
    stop(4),
    *ending("tool_use", output_tokens=50),
]


async def answer(reply: Reply, request: ModelRequest | None = None) -> Gathered:
    async with ModelServer(reply) as server:
        provider = make_provider("anthropic", api_key="sk-ant-1", base_url=server.url)
        try:
            return await gather(provider, request or asked("hi"))
        finally:
            await provider.aclose()


@pytest.mark.parametrize("split", [0, 1])
async def test_every_kind_of_block_is_streamed(split: int) -> None:
    found = await answer(sse(message_events(FULL), split=split))
    assert (found.thinking, found.text) == ("Let me see.", "Grüß dich 👋")
    seals = [
        chunk for chunk in found.chunks if isinstance(chunk, ThinkingChunk) and chunk.signature
    ]
    assert seals == [ThinkingChunk("", "sealed"), ThinkingChunk("", "hidden", redacted=True)]
    assert found.done.stop_reason == "tool_use"
    assert found.done.tool_uses == (
        ToolUseBlock("t1", "add", {"x": "é"}),
        ToolUseBlock("t2", "now", {}),
    )
    assert found.done.usage == Usage(1110, 50, 1000, 100)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "end_turn"),
        ("tool_use", "end_turn"),
        ("something_new", "end_turn"),
    ],
)
async def test_stop_reasons(sent: str, reason: str) -> None:
    events = [opening(), start(0, "text", text="x"), stop(0), *ending(sent)]
    found = await answer(sse(message_events(events)))
    assert (found.text, found.done.stop_reason) == ("x", reason)


async def test_an_empty_answer_is_an_answer() -> None:
    found = await answer(sse(message_events([opening(input_tokens=3), *ending()])))
    assert (found.text, found.done.stop_reason, found.done.usage) == ("", "end_turn", Usage(3))


async def test_nulls_and_missing_ends_of_blocks_are_tolerated() -> None:
    events = [
        {"type": "message_start", "message": None},
        start(0, "thinking", thinking=None, signature="s"),
        delta(0, "thinking_delta", thinking="hm"),
        start(1, "tool_use", id=None, name="add", input={"x": 1}),
        delta(7, "input_json_delta", partial_json="{}"),
        delta(1, "input_json_delta", partial_json=None),
        {"type": "content_block_delta", "index": 1, "delta": None},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": None},
    ]
    found = await answer(sse(message_events(events)))
    assert found.done.tool_uses == (ToolUseBlock("", "add", {"x": 1}),)
    assert ThinkingChunk("", "s") in found.chunks


async def test_a_server_that_answers_with_one_document_works() -> None:
    document = {
        "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "id": "a", "name": "b"}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    found = await answer(status(200, document))
    assert (found.text, found.done.usage) == ("ok", Usage(1, 2))
    assert found.done.tool_uses == (ToolUseBlock("a", "b"),)


async def test_a_stream_cut_at_any_byte_fails_unless_the_model_had_stopped() -> None:
    events = [opening(), start(0, "text", text=""), delta(0, "text_delta", text="ok"), *ending()]
    body = message_events(events)
    stopped = body.index(b"event: message_stop")
    async with ModelServer() as server:
        provider = make_provider("anthropic", base_url=server.url)
        for at in range(0, len(body), 3):
            server.script(cut(body, at))
            found, error = await outcome(provider, asked("hi"))
            if error is None:
                assert at >= stopped - 2
                assert found.text == "ok"
            else:
                assert (error.code, error.transient) == ("provider_stream_broken", True)
                assert at < stopped
        await provider.aclose()


@pytest.mark.parametrize(
    ("kind", "code", "transient"),
    [
        ("overloaded_error", "provider_overloaded", True),
        ("api_error", "provider_overloaded", True),
        ("rate_limit_error", "provider_rate_limited", True),
        ("invalid_request_error", "provider_bad_request", False),
        ("authentication_error", "provider_auth", False),
    ],
)
async def test_an_error_event_in_mid_stream_ends_the_answer(
    kind: str, code: str, transient: bool
) -> None:
    events = [
        opening(),
        start(0, "text", text="so far"),
        {"type": "error", "error": {"type": kind, "message": "sorry"}},
    ]
    found = Gathered()
    async with ModelServer(sse(message_events(events))) as server:
        provider = make_provider("anthropic", base_url=server.url)
        with pytest.raises(ProviderError) as caught:
            await gather(provider, asked("hi"), found)
    assert (caught.value.code, caught.value.transient) == (code, transient)
    assert "sorry" in caught.value.message
    assert found.text == "so far"


async def test_the_request_holds_the_conversation_in_the_wire_format() -> None:
    messages = (
        Message("1", "user", (TextBlock("hi"),)),
        Message("2", "user", (TextBlock("there"), TextBlock("  "))),
        Message(
            "3",
            "assistant",
            (
                ThinkingBlock("hm", "sealed"),
                ThinkingBlock("", "hidden", redacted=True),
                ThinkingBlock("another provider's"),
                TextBlock(""),
                ToolUseBlock("functions.add:0", "add", {"x": 1}),
                ToolUseBlock("c2", "add", malformed="{"),
            ),
        ),
        Message(
            "4",
            "tool",
            (
                ToolResultBlock("functions.add:0", (TextBlock("3"), TextBlock(""))),
                ToolResultBlock("c2", (), is_error=True),
            ),
        ),
        Message("5", "assistant", ()),
        Message("6", "user", (TextBlock("go on"),)),
    )
    tool = ToolSpec("add", "Adds.", {"type": "object"})
    request = ModelRequest("claude-x", messages, "Be kind.", (tool,), 99)
    async with ModelServer(sse(message_events([opening(), *ending()]))) as server:
        for base_url in (server.url, server.base_url):
            provider = make_provider("anthropic", api_key="sk-ant-1", base_url=base_url)
            await gather(provider, request)
        first, second = server.requests
    assert (first.method, first.path, second.path) == ("POST", "/v1/messages", "/v1/messages")
    assert first.headers["x-api-key"] == "sk-ant-1"
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.json == {
        "model": "claude-x",
        "max_tokens": 99,
        "stream": True,
        "system": "Be kind.",
        "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sealed"},
                    {"type": "redacted_thinking", "data": "hidden"},
                    {
                        "type": "tool_use",
                        "id": "functions_add_0",
                        "name": "add",
                        "input": {"x": 1},
                    },
                    {
                        "type": "tool_use",
                        "id": "c2",
                        "name": "add",
                        "input": {"malformed_arguments": "{"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "functions_add_0",
                        "content": [{"type": "text", "text": "3"}],
                    },
                    {"type": "tool_result", "tool_use_id": "c2", "is_error": True},
                    {"type": "text", "text": "go on"},
                ],
            },
        ],
    }
