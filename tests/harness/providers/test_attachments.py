"""What a person attaches reaches each model before the message, in its frame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.asking import gather
from tests.support.model_server import ModelServer, Reply, sse
from tests.support.model_wire import chat_ending, message_events
from web.harness.providers import make_provider
from web.harness.providers.demo.provider import DemoProvider
from web.harness.values.messages import Message, ResourceBlock, TextBlock
from web.harness.values.model import ModelRequest

pytestmark = pytest.mark.anyio

NOTES = (
    ResourceBlock("notes://today", "Today", "text/plain", "Rain.", "notes"),
    ResourceBlock("", "Plan, message 1", "text/plain", "Stay in."),
)
REQUEST = ModelRequest("m", (Message("1", "user", (*NOTES, TextBlock("And tomorrow?"))),))
ANSWERED: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    {"type": "message_stop"},
]


async def sent(name: str, reply: Reply) -> Any:
    """The content of the one message that the API was sent."""
    async with ModelServer(reply) as server:
        provider = make_provider(name, api_key="key", base_url=server.url)
        try:
            await gather(provider, REQUEST)
        finally:
            await provider.aclose()
        (request,) = server.requests
    (message,) = json.loads(request.body)["messages"]
    return message["content"]


async def test_chat_completions_get_one_text() -> None:
    content = await sent("openai", sse(b"".join(chat_ending("stop"))))
    assert content == "\n\n".join([NOTES[0].framed, NOTES[1].framed, "And tomorrow?"])


async def test_anthropic_gets_a_block_for_each() -> None:
    content = await sent("anthropic", sse(message_events(ANSWERED)))
    texts = [NOTES[0].framed, NOTES[1].framed, "And tomorrow?"]
    assert content == [{"type": "text", "text": text} for text in texts]


async def test_the_demo_model_says_what_it_was_given() -> None:
    found = await gather(DemoProvider(pace=0), REQUEST)
    assert "2 attachments" in found.text
    assert "`Today`, from `notes`, has 5 characters" in found.text
    assert "Stay in." in found.text


async def test_of_a_file_that_is_left_out_the_demo_model_says_what_it_is_told() -> None:
    told = "The file data.bin is not in this message."
    file = ResourceBlock("", "data.bin", "application/zip", told, file_bytes=2_000)
    request = ModelRequest("demo", (Message("1", "user", (file, TextBlock("look"))),))
    text = (await gather(DemoProvider(pace=0), request)).text
    assert "has 2 KB, and of it I am told:" in text
    assert told in text
    assert "characters" not in text
