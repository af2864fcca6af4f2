"""Pictures reach each model as its API wants them; what does not fit is named, and told once."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.asking import Gathered, asked, gather, outcome
from tests.support.model_server import ModelServer, Reply, sse, status
from tests.support.model_wire import chat_ending, message_events
from tests.support.pictures import picture, png
from web.harness.providers import make_provider
from web.harness.providers.anthropic import PICTURE_LIMITS
from web.harness.providers.demo.provider import DemoProvider
from web.harness.providers.pictures import MAX_COUNT, MAX_TOTAL_BYTES, fitted
from web.harness.values.errors import PicturesRefused
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelRequest, NoteChunk

pytestmark = pytest.mark.anyio

PLAN, SHOT, OTHER = picture("plan.png"), picture(), picture("", 30, 20)
ANSWERED: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    {"type": "message_stop"},
]
REPLIES = {
    "openai": sse(b"".join(chat_ending("stop"))),
    "anthropic": sse(message_events(ANSWERED)),
}
ROUND = (
    Message("1", "user", (TextBlock("Look."),)),
    Message("2", "assistant", (ToolUseBlock("a", "shoot"), ToolUseBlock("b", "list"))),
    Message(
        "3",
        "tool",
        (
            ToolResultBlock("a", (TextBlock("Two:"), SHOT, OTHER)),
            ToolResultBlock("b", (TextBlock("none"),)),
        ),
    ),
)


async def sent(name: str, request: ModelRequest) -> tuple[list[dict[str, Any]], Gathered]:
    """The messages that the API was sent, and what came back."""
    async with ModelServer(REPLIES[name]) as server:
        provider = make_provider(name, api_key="key", base_url=server.url)
        try:
            found = await gather(provider, request)
        finally:
            await provider.aclose()
        (recorded,) = server.requests
    return json.loads(recorded.body)["messages"], found


def notes(found: Gathered) -> list[str]:
    return [chunk.text for chunk in found.chunks if isinstance(chunk, NoteChunk)]


def encoded(block: ImageBlock) -> str:
    return base64.b64encode(block.data).decode()


def for_openai(block: ImageBlock) -> dict[str, Any]:
    url = f"data:{block.media_type};base64,{encoded(block)}"
    return {"type": "image_url", "image_url": {"url": url}}


def for_anthropic(block: ImageBlock) -> dict[str, Any]:
    source = {"type": "base64", "media_type": block.media_type, "data": encoded(block)}
    return {"type": "image", "source": source}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_chat_completions_get_an_attached_picture_as_a_part() -> None:
    (message,), found = await sent("openai", asked(PLAN, OTHER, "What is it?"))
    assert message["content"] == [
        text(PLAN.line),
        for_openai(PLAN),
        for_openai(OTHER),
        text("What is it?"),
    ]
    assert notes(found) == []


async def test_anthropic_gets_an_attached_picture_as_a_block() -> None:
    (message,), _ = await sent("anthropic", asked(PLAN, OTHER, "What is it?"))
    assert message["content"] == [
        text(PLAN.line),
        for_anthropic(PLAN),
        for_anthropic(OTHER),
        text("What is it?"),
    ]


async def test_chat_completions_get_the_pictures_of_results_after_all_results() -> None:
    messages, _ = await sent("openai", ModelRequest("m", ROUND))
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "Two:"},
        {"role": "tool", "tool_call_id": "b", "content": "none"},
        {
            "role": "user",
            "content": [
                text("[From the result of shoot (call a), not from the person:]"),
                for_openai(SHOT),
                for_openai(OTHER),
            ],
        },
    ]


async def test_a_result_of_pictures_alone_is_not_empty_for_chat_completions() -> None:
    result = Message("3", "tool", (ToolResultBlock("a", (SHOT,)), ToolResultBlock("b", ())))
    messages, _ = await sent("openai", ModelRequest("m", (*ROUND[:2], result)))
    assert messages[2]["content"] == "[The result is in the next message.]"


async def test_anthropic_gets_the_pictures_of_a_result_inside_it() -> None:
    messages, _ = await sent("anthropic", ModelRequest("m", ROUND))
    first, second = messages[-1]["content"]
    assert first["content"] == [text("Two:"), for_anthropic(SHOT), for_anthropic(OTHER)]
    assert second["content"] == [text("none")]


async def test_the_type_that_is_sent_is_that_of_the_bytes() -> None:
    claimed = replace(PLAN, media_type="image/gif")
    (message,), _ = await sent("anthropic", asked(claimed, "x"))
    assert message["content"][1]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize(
    ("name", "block", "words"),
    [
        (
            "anthropic",
            picture("plan.png", size=6_100_000),
            "icture plan.png, PNG, 6.1 MB, 640 x 480 pixels: left out, the model takes at most "
            "3.9 MB",
        ),
        (
            "anthropic",
            picture("wide.png", 9_000, 10),
            "icture wide.png, PNG, 65 bytes, 9,000 x 10 pixels: left out, the model takes at most "
            "8,000 pixels a side",
        ),
        (
            "openai",
            picture("bomb.png", 60_000, 60_000),
            "icture bomb.png, PNG, 65 bytes, 60,000 x 60,000 pixels: left out, it is broken or "
            "has too many pixels",
        ),
        (
            "openai",
            replace(picture("cut.png"), data=picture().data[:60]),
            "icture cut.png, PNG, 60 bytes, 640 x 480 pixels: left out, it is cut off, its end is "
            "missing",
        ),
        (
            "openai",
            ImageBlock("image/png", "", b"<svg width='9'/>", "plan.png"),
            "icture plan.png, PNG, 16 bytes: left out, the model takes PNG, JPEG, GIF and WebP",
        ),
    ],
)
async def test_what_the_api_would_refuse_is_named_to_the_model_and_to_the_person(
    name: str, block: ImageBlock, words: str
) -> None:
    (message,), found = await sent(name, asked(block, "What is it?"))
    assert f"[p{words}]" in json.dumps(message["content"], ensure_ascii=False)
    assert encoded(block)[:40] not in json.dumps(message["content"])
    assert notes(found) == [f"P{words}."]


async def test_what_was_left_out_in_an_earlier_turn_is_not_told_again() -> None:
    large = picture("plan.png", size=6_100_000)
    again = (Message("1", "user", (large, TextBlock("a"))), Message("2", "user", (TextBlock("b"),)))
    messages, found = await sent("anthropic", ModelRequest("m", again))
    assert "left out" in messages[0]["content"][0]["text"]
    assert notes(found) == []


def kept(*blocks: ContentBlock) -> list[bool]:
    (message,) = fitted(asked(*blocks), PICTURE_LIMITS).request.messages
    return [not each.left_out for each in message.pictures]


def test_the_newest_pictures_are_sent_as_far_as_number_and_size_allow() -> None:
    assert kept(*[SHOT] * (MAX_COUNT + 2)) == [False] * 2 + [True] * MAX_COUNT
    large = picture(size=3_000_000)
    room = MAX_TOTAL_BYTES // len(large.data)
    assert kept(*[large] * (room + 1)) == [False] + [True] * room


async def test_a_request_of_many_megabytes_arrives_whole() -> None:
    block = picture(size=3_900_000)
    (message,), _ = await sent("anthropic", asked(block, block, "x"))
    assert base64.b64decode(message["content"][1]["source"]["data"]) == block.data


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "messages[0]: unknown variant `image_url`, expected `text`"),
        (400, "this model does not support image input"),
        (404, "No endpoints found that support image input"),
        (400, "'messages.0.content' : value must be a string"),
        (422, "Input should be a valid string"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (400, "Unexpected role 'user' after role 'tool'"),
        (400, "m is not a multimodal model"),
        (413, "Request Entity Too Large"),
    ],
)
async def test_a_refusal_of_pictures_is_told_apart(code: int, words: str) -> None:
    error = await refused(status(code, {"error": {"message": words}}), PLAN)
    assert isinstance(error, PicturesRefused)
    assert (error.code, error.transient) == ("provider_pictures_refused", False)
    assert words in error.message


@pytest.mark.parametrize(
    ("code", "words", "block"),
    [
        (400, "this model does not support image input", TextBlock("no picture here")),
        (413, "Request Entity Too Large", TextBlock("no picture here")),
        (400, "max_tokens is too large", PLAN),
        (401, "Invalid key for image models", PLAN),
        (429, "Too many images a minute", PLAN),
    ],
)
async def test_other_refusals_stay_what_they_are(
    code: int, words: str, block: ContentBlock
) -> None:
    error = await refused(status(code, {"error": {"message": words}}), block)
    assert error is not None
    assert not isinstance(error, PicturesRefused)


async def refused(reply: Reply, block: ContentBlock) -> Exception | None:
    async with ModelServer(reply) as server:
        provider = make_provider("openai", base_url=server.base_url)
        _, error = await outcome(provider, asked(block, "hi"))
        await provider.aclose()
    return error


async def test_the_demo_model_says_what_it_saw() -> None:
    found = await gather(DemoProvider(pace=0), asked(PLAN, ""))
    size = len(png(640, 480))
    assert f"I saw the picture `plan.png`: PNG, {size} bytes, 640 x 480 pixels." in found.text


async def test_the_demo_model_says_which_pictures_a_tool_brought() -> None:
    shot = replace(SHOT, name="shot.png")
    result = Message("3", "tool", (ToolResultBlock("a", (TextBlock("Done."), shot)),))
    calls = Message("2", "assistant", (ToolUseBlock("a", "shoot"),))
    found = await gather(DemoProvider(pace=0), ModelRequest("m", (ROUND[0], calls, result)))
    assert "`shoot` returned `Done.`\n\nI saw the picture `shot.png`: PNG" in found.text
