"""Through the real wire formats: a server refuses, teaches its limit, sums up and answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.model_server import ModelServer, sse, status
from tests.support.model_wire import chat_events, message_events
from web.harness.agent.agent import Agent
from web.harness.memory.summaries import is_summary
from web.harness.providers import make_provider
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.messages import Message, TextBlock

pytestmark = pytest.mark.anyio

NOTES = "Notes on it."
MESSAGE: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": NOTES}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
]

REFUSALS: dict[str, Any] = {
    "openai": {
        "error": {
            "message": "This model's maximum context length is 4096 tokens. However, you requested "
            "6000 tokens (5000 in the messages, 1000 in the completion).",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
    "anthropic": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 5000 tokens > 4096 maximum",
        },
    },
}


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_a_refusal_over_http_ends_in_notes_and_an_answer(vendor: str) -> None:
    answer = chat_events(NOTES) if vendor == "openai" else message_events(MESSAGE)
    said = [
        Message(
            f"m{n}", "user" if n % 2 == 0 else "assistant", (TextBlock(f"{n} " + "word " * 400),)
        )
        for n in range(10)
    ]
    model = ModelName(vendor, "small")
    async with ModelServer() as server:
        server.script(status(400, REFUSALS[vendor]))
        server.default = sse(answer)
        provider = make_provider(vendor, base_url=server.base_url)
        agent = Agent(AgentConfig(model, max_tokens=1_000), provider=provider, messages=said)
        try:
            result = await agent.run("and now?")
        finally:
            await provider.aclose()
        assert (result.status, result.text) == ("completed", NOTES)
        assert agent.learned_limits.get(model) == 4_096
        assert is_summary(agent.memory.get_messages()[0])
        last = server.requests[-1].json
        assert last["max_tokens"] <= 1_000
        roles = [message["role"] for message in last["messages"]]
        assert all(one != other for one, other in itertools.pairwise(roles))
        assert NOTES in str(last["messages"][0]["content"])
        assert "tools" not in last
