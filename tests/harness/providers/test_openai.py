"""Chat Completions over a port: what is sent, and what compatible servers may do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.asking import Gathered, asked, gather, outcome
from tests.support.model_server import ModelServer, Reply, TokenStream, cut, raw, sse, status
from tests.support.model_wire import chat_ending, chat_event, chat_events, event, token
from web.harness.providers import make_provider
from web.harness.values.errors import ProviderError
from web.harness.values.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelRequest, ToolSpec
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio


async def answer(reply: Reply, request: ModelRequest | None = None) -> Gathered:
    async with ModelServer(reply) as server:
        provider = make_provider("openai", base_url=server.base_url)
        try:
            return await gather(provider, request or asked("hi"))
        finally:
            await provider.aclose()


async def answered(*deltas: dict[str, Any], finish: str = "stop") -> Gathered:
    body = b"".join([*map(chat_event, deltas), *chat_ending(finish)])
    return await answer(sse(body))


def fragment(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> Any:
    return {
        "index": index,
        "id": call_id,
        "function": {"name": name, "arguments": arguments},
    }


def called(*fragments: Any) -> dict[str, Any]:
    return {"content": None, "tool_calls": list(fragments)}


def finished(found: Gathered) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in found.done.tool_uses]


async def test_text_thinking_and_usage_are_streamed() -> None:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    body = b"".join(
        [
            chat_event({"role": "assistant", "content": ""}),
            chat_event({"reasoning_content": "Hm"}),
            chat_event({"reasoning": ", well."}),
            chat_event({"content": "Grüß "}),
            chat_event({"content": "dich 👋"}),
            chat_event({}, "stop"),
            event({"choices": [], "usage": usage}),
            b"data: [DONE]\n\n",
        ]
    )
    found = await answer(sse(body))
    assert (found.thinking, found.text) == ("Hm, well.", "Grüß dich 👋")
    assert found.done.stop_reason == "end_turn"
    assert found.done.usage == Usage(20, 9, cache_read_input_tokens=8, thinking_tokens=5)


async def test_a_stream_sent_byte_by_byte_is_the_same() -> None:
    body = chat_events("Grüß ", "dich 👋", "\r\n")
    found = await answer(sse(body, split=1))
    assert found.text == "Grüß dich 👋\r\n"
    whole = b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
        len(body),
        body,
    )
    found = await answer(raw(*(bytes([byte]) for byte in whole)))
    assert found.text == "Grüß dich 👋\r\n"


async def test_all_tokens_of_one_read_come_in_one_list() -> None:
    found = await answer(TokenStream(500, batch=500))
    assert found.text == "".join(map(token, range(500)))
    assert found.reads < 50


async def test_fragments_of_several_calls_are_put_together() -> None:
    found = await answered(
        called(fragment(0, "a", "add", "")),
        called(fragment(0, None, None, '{"x": 1')),
        called(fragment(1, "b", "list", ""), fragment(0, None, None, ', "y": 2}')),
        called(fragment(1, None, None, '{"of": ["é"]}')),
        finish="tool_calls",
    )
    assert finished(found) == [("a", "add", {"x": 1, "y": 2}), ("b", "list", {"of": ["é"]})]
    assert found.done.stop_reason == "tool_use"
    assert {chunk.index: (chunk.id, chunk.name) for chunk in found.calls} == {
        0: ("a", "add"),
        1: ("b", "list"),
    }
    assert "".join(chunk.arguments for chunk in found.calls if chunk.index == 0) == (
        '{"x": 1, "y": 2}'
    )


@pytest.mark.parametrize(
    "deltas",
    [
        # Neither ids nor indexes, each call whole.
        [
            called(fragment(None, None, "a", '{"n": 1}')),
            called(fragment(None, "", "a", '{"n": 2}')),
        ],
        # The same in one delta, arguments as objects.
        [called(fragment(None, None, "a", {"n": 1}), fragment(None, None, "a", {"n": 2}))],
        # Ids without indexes, in pieces.
        [
            called(fragment(None, "x", "a", '{"n"')),
            called(fragment(None, "x", None, ": 1}")),
            called(fragment(None, "y", "a", '{"n": 2}')),
        ],
        # Every call has the index 0.
        [called(fragment(0, "x", "a", '{"n": 1}')), called(fragment(0, "y", "a", '{"n": 2}'))],
        # The name comes again with each piece.
        [
            called(fragment(None, None, "a", '{"n"')),
            called(fragment(None, None, "a", ": 1}")),
            called(fragment(None, None, "a", '{"n": 2}')),
        ],
        # Indexes that begin at one, and a call among nulls.
        [
            {"content": None, "reasoning": None, "tool_calls": None},
            called(None, fragment(1, None, "a", '{"n": 1}')),
            called(fragment(2, None, "a", '{"n": 2}')),
        ],
    ],
)
async def test_calls_of_servers_that_leave_things_out_are_told_apart(deltas: list[Any]) -> None:
    found = await answered(*deltas)
    calls = [(name, arguments) for _, name, arguments in finished(found)]
    assert calls == [("a", {"n": 1}), ("a", {"n": 2})]
    assert found.done.stop_reason == "tool_use"


async def test_arguments_may_be_missing_null_or_broken() -> None:
    found = await answered(
        called(fragment(0, "a", "now", None), fragment(1, "b", "now", "null")),
        called(fragment(2, "c", "now", '{"zone": '), fragment(3, "d", "now", "[1]")),
    )
    calls = [(call.arguments, call.malformed) for call in found.done.tool_uses]
    assert calls == [({}, None), ({}, None), ({}, '{"zone": '), ({}, "[1]")]


async def test_two_calls_of_one_delta_are_two_even_if_nothing_tells_them_apart() -> None:
    found = await answered(called(fragment(None, None, "now", ""), fragment(None, None, "now", "")))
    assert finished(found) == [("", "now", {}), ("", "now", {})]


async def test_the_older_form_of_a_call_works() -> None:
    found = await answered(
        {"function_call": {"name": "add", "arguments": '{"x"'}},
        {"function_call": {"arguments": ": 1}"}},
        finish="function_call",
    )
    assert finished(found) == [("", "add", {"x": 1})]


@pytest.mark.parametrize(
    ("delta", "finish", "reason"),
    [
        ({"content": "x"}, "length", "max_tokens"),
        ({"content": "x"}, "content_filter", "refusal"),
        ({"refusal": "x"}, "stop", "refusal"),
        ({"content": "x"}, "STOP", "end_turn"),
        ({"content": "x"}, "something_new", "end_turn"),
    ],
)
async def test_stop_reasons(delta: dict[str, Any], finish: str, reason: str) -> None:
    found = await answered(delta, finish=finish)
    assert (found.text, found.done.stop_reason) == ("x", reason)


@pytest.mark.parametrize(
    "body",
    [
        chat_event({"content": "ok"}, "stop"),
        chat_event({"content": "ok"}) + b"data: [DONE]\n\n",
        chat_event({"content": "ok"}) + b"data: [DONE]",
        chat_events("ok").replace(b"\n", b"\r\n"),
        chat_events("ok").replace(b"\n", b"\r"),
        chat_events("ok").replace(b"data: ", b"data:"),
        b": hello\n\n" + chat_events("ok").replace(b"data: ", b": ping\ndata: "),
        chat_events("ok").replace(b"\n\n", b"\n\ndata: null\n\ndata:\n\n"),
        event({"choices": None, "usage": None}) + event({"error": None}) + chat_events("ok"),
        event({"choices": [{"delta": None, "finish_reason": None}]}) + chat_events("ok"),
        event({"choices": [None]}) + event([]) + event("x") + chat_events("ok"),
        b'data: {"choices": [{"delta":\ndata:  {"content": "ok"},\n'
        b'data: "finish_reason": "stop"}]}\n\n',
        chat_event({"content": [{"type": "text", "text": "ok"}, None]}, "stop"),
    ],
)
async def test_servers_may_leave_out_or_write_otherwise(body: bytes) -> None:
    found = await answer(sse(body))
    assert found.text == "ok"
    assert found.done.stop_reason == "end_turn"


async def test_a_server_that_answers_with_one_document_works() -> None:
    document = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "ok",
                    "tool_calls": [{"id": "a", "function": {"name": "add", "arguments": "{}"}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4.0},
    }
    found = await answer(status(200, document))
    assert (found.text, finished(found)) == ("ok", [("a", "add", {})])
    assert found.done.usage == Usage(3, 4)


async def test_an_empty_answer_is_an_answer() -> None:
    found = await answer(sse(b"data: [DONE]\n\n"))
    assert (found.text, found.done.stop_reason, found.done.tool_uses) == ("", "end_turn", ())


@pytest.mark.parametrize("abort", [False, True])
async def test_a_stream_cut_at_any_byte_fails_unless_the_model_had_stopped(abort: bool) -> None:
    body = chat_event({"content": "one"}) + chat_event({"content": "two"}) + b"".join(chat_ending())
    stopped = body.index(b'"stop"') + len(b'"stop"}]}')
    async with ModelServer() as server:
        provider = make_provider("openai", base_url=server.base_url)
        for at in range(0, len(body), 3):
            server.script(cut(body, at, abort=abort))
            found, error = await outcome(provider, asked("hi"))
            if error is None:
                assert at >= stopped
                assert found.text == "onetwo"
                assert found.done.stop_reason == "end_turn"
            else:
                assert (error.code, error.transient) == ("provider_stream_broken", True)
                assert at < stopped + 2
                assert "onetwo".startswith(found.text)
        await provider.aclose()


@pytest.mark.parametrize(
    ("broken", "code", "transient"),
    [
        (b"data: {not json}\n\n", "provider_stream_broken", True),
        (event({"error": {"message": "busy", "code": 503}}), "provider_overloaded", True),
        (event({"message": "busy"}, "error"), "provider_overloaded", True),
        (chat_event({}, "error"), "provider_stream_broken", True),
        (
            event({"error": {"message": "no", "type": "invalid_request_error"}}),
            "provider_bad_request",
            False,
        ),
    ],
)
async def test_an_error_in_mid_stream_comes_after_the_text_before_it(
    broken: bytes, code: str, transient: bool
) -> None:
    found = Gathered()
    async with ModelServer(sse(chat_event({"content": "so far"}) + broken)) as server:
        provider = make_provider("openai", base_url=server.base_url)
        with pytest.raises(ProviderError) as caught:
            await gather(provider, asked("hi"), found)
    assert (caught.value.code, caught.value.transient) == (code, transient)
    assert found.text == "so far"


async def test_the_request_holds_the_conversation_in_the_wire_format() -> None:
    call = ToolUseBlock("c1", "add", {"x": "é"})
    broken = ToolUseBlock("c2", "add", malformed='{"x": ')
    messages = (
        Message("1", "user", (TextBlock("hi"),)),
        Message("2", "assistant", (ThinkingBlock("hm", "sig"), TextBlock("yes"), call, broken)),
        Message(
            "3",
            "tool",
            (
                ToolResultBlock("c1", (TextBlock("3"), TextBlock("4"))),
                ToolResultBlock("c2", (TextBlock("not JSON"),), is_error=True),
            ),
        ),
        Message("4", "assistant", ()),
        Message("5", "user", (TextBlock("half \ud800 a pair"),)),
    )
    tool = ToolSpec("add", "Adds.", {"type": "object", "properties": {"x": {"type": "string"}}})
    request = ModelRequest("gpt-x", messages, "Be kind.", (tool,), 99, temperature=0.5)
    async with ModelServer(sse(chat_events("ok"))) as server:
        provider = make_provider("openai", api_key="sk-1", base_url=server.base_url + "/")
        await gather(provider, request)
        await gather(provider, asked("hi"))
        first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.headers["authorization"] == "Bearer sk-1"
    sent = first.json
    calls = sent["messages"][2].pop("tool_calls")
    assert sent == {
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yes"},
            {"role": "tool", "tool_call_id": "c1", "content": "3\n4"},
            {"role": "tool", "tool_call_id": "c2", "content": "Error: not JSON"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "half ? a pair"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 99,
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "add",
                    "description": "Adds.",
                    "parameters": tool.input_schema,
                },
            }
        ],
    }
    arguments = [json.loads(item["function"]["arguments"]) for item in calls]
    assert arguments == [{"x": "é"}, {"malformed_arguments": '{"x": '}]
    assert [item["id"] for item in calls] == ["c1", "c2"]
    assert not {"temperature", "tools"} & set(second.json)
