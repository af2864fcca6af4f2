"""The demo model with a small context refuses as real ones do, and can sum up a conversation."""

from __future__ import annotations

import pytest

from web.harness.memory.summaries import summary_message, summary_request
from web.harness.providers.context_sizes import stated_context
from web.harness.providers.demo.provider import DemoProvider
from web.harness.providers.demo.small import CONTEXT_TOKENS
from web.harness.values.config import DEMO_MODEL, SMALL_DEMO_MODEL, ModelName
from web.harness.values.errors import ContextTooLong
from web.harness.values.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelDone, ModelRequest, TextChunk, ToolSpec

pytestmark = pytest.mark.anyio


def said(text: str) -> Message:
    return Message("m", "user", (TextBlock(text),))


async def answer(request: ModelRequest) -> tuple[str, ModelDone]:
    chunks = [chunk async for some in DemoProvider(pace=0).stream(request) for chunk in some]
    done = chunks[-1]
    assert isinstance(done, ModelDone)
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)), done


async def test_it_refuses_what_leaves_no_room_for_its_answer_and_says_so() -> None:
    request = ModelRequest("small", (said("word " * 7_500),), max_tokens=1_000)
    with pytest.raises(ContextTooLong) as caught:
        await answer(request)
    assert (caught.value.limit, caught.value.transient) == (CONTEXT_TOKENS, False)
    assert 7_500 < (caught.value.counted or 0) < 7_600
    assert "8192 tokens" in caught.value.message
    _, done = await answer(ModelRequest("small", (said("word " * 7_000),), max_tokens=1_000))
    assert 7_000 < done.usage.input_tokens < 7_100


async def test_everything_that_is_sent_counts() -> None:
    use = ToolUseBlock("i", "read", {"path": "a b c"})
    picture = ImageBlock("image/png", "0", b"x", width=9, height=9)
    result = ToolResultBlock("i", (TextBlock("one two three"), picture))
    whole = ModelRequest(
        "small",
        (said("hello"), Message("a", "assistant", (use,)), Message("t", "tool", (result,))),
        "You are brief.",
        (ToolSpec("read", "Reads.", {"type": "object"}),),
        max_tokens=100,
    )
    _, done = await answer(whole)
    _, less = await answer(ModelRequest("small", (said("hello"),), max_tokens=100))
    assert done.usage.input_tokens > less.usage.input_tokens + 800


async def test_the_usual_demo_model_has_no_such_limit() -> None:
    _, done = await answer(ModelRequest("demo", (said("word " * 20_000),)))
    assert done.usage.input_tokens > 20_000


def test_only_a_refusal_tells_the_small_context() -> None:
    assert stated_context(SMALL_DEMO_MODEL) is None
    assert stated_context(DEMO_MODEL) == 128_000
    assert stated_context(ModelName("anthropic", "any")) == 200_000
    assert stated_context(ModelName("openai", "gpt-4.1-mini")) == 1_047_576
    assert stated_context(ModelName("openai", "llama3:8b")) == 128_000
    assert stated_context(ModelName("other", "any")) is None


async def test_it_sums_up_what_the_person_said_and_keeps_the_notes_of_before() -> None:
    conversation = "Person: I like tea\n\nAssistant: noted\n\nPerson: and " + "cake " * 60
    first, _ = await answer(summary_request("small", "", conversation, 400, 900, 60.0))
    assert "- I like tea" in first
    assert "noted" not in first
    second, done = await answer(summary_request("demo", first, "Person: third", 400, 900, 60.0))
    assert second.splitlines()[2:] == [*first.splitlines()[2:], "- third"]
    assert done.stop_reason == "end_turn"


async def test_its_notes_keep_to_their_length_and_the_newest_stay() -> None:
    conversation = "\n".join(f"Person: number {n}" for n in range(1_000))
    notes, _ = await answer(summary_request("small", "", conversation, 200, 900, 60.0))
    assert len(notes) <= 600
    assert notes.endswith("- number 999")


async def test_notes_that_come_with_a_message_are_no_attachment_of_the_persons() -> None:
    notes = summary_message("n", "They like tea.")
    message = Message("m", "user", (*notes.content, TextBlock("show markdown")))
    text, _ = await answer(ModelRequest("demo", (message,)))
    assert "attachment" not in text
    assert "Heading one" in text
