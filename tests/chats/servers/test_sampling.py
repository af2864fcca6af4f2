"""Servers of a chat ask its model through the person, and learn of its folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening
from tests.support.scripted_provider import ScriptedProvider, breaks, calls, says
from web.chats.chat import Chat
from web.chats.parts.kinds import Call
from web.chats.servers.sampling import ChatSampler
from web.harness.mcp.sampling import SamplingMessage, SamplingRequest
from web.harness.mcp.spec import ServerSpec
from web.harness.values.errors import HarnessError
from web.harness.values.events import ApprovalRequired, EventBody, InputRequired

pytestmark = pytest.mark.anyio

REQUEST = SamplingRequest(
    (SamplingMessage("user", "hi"), SamplingMessage("assistant", "ho")),
    max_tokens=7,
    system_prompt="Be brief.",
    temperature=0.5,
    stop=("STOP", "END"),
)


@asynccontextmanager
async def room(*answers: Any, **more: Any) -> AsyncIterator[ChatRoom]:
    async with chat_room(ScriptedProvider(*answers), **more) as made:
        made.chats.servers.start()
        try:
            yield made
        finally:
            await made.chats.servers.aclose()


@asynccontextmanager
async def sampler(*answers: Any) -> AsyncIterator[tuple[ChatSampler, ScriptedProvider]]:
    async with chat_room(ScriptedProvider(*answers)) as made:
        chat = await made.new_chat()
        yield ChatSampler(chat, lambda model: made.provider), made.provider


async def test_the_model_of_the_chat_is_asked_what_the_person_left() -> None:
    async with sampler(says("one ", "two", stop_reason="max_tokens")) as (sample, provider):
        answer = await sample(REQUEST)
    assert (answer.text, answer.model, answer.stop_reason) == ("one two", "demo:demo", "maxTokens")
    assert answer.usage.output_tokens == 2
    [asked] = provider.requests
    assert [(each.role, each.text) for each in asked.messages] == [
        ("user", "hi"),
        ("assistant", "ho"),
    ]
    assert (asked.model, asked.system_prompt) == ("demo", "Be brief.")
    assert (asked.max_tokens, asked.temperature, asked.tools) == (7, 0.5, ())


@pytest.mark.parametrize("pieces", [("one STOP two",), ("one S", "T", "OP two"), ("one ENDSTOP",)])
async def test_the_answer_ends_before_a_stop(pieces: tuple[str, ...]) -> None:
    never = asyncio.Event()
    async with sampler([*says(*pieces)[:-1], never]) as (sample, provider):
        answer = await sample(REQUEST)
        assert (answer.text, answer.stop_reason) == ("one ", "stopSequence")
        assert provider.open == 0


async def test_a_model_that_fails_or_declines_is_an_error_in_words() -> None:
    async with sampler(breaks("one")) as (sample, _):
        with pytest.raises(HarnessError, match="overloaded"):
            await sample(REQUEST)
    async with sampler(says("", stop_reason="refusal")) as (sample, _):
        with pytest.raises(HarnessError, match="declined"):
            await sample(REQUEST)


async def test_a_sample_that_is_cancelled_ends_the_model() -> None:
    async with sampler([asyncio.Event()]) as (sample, provider):
        asking = asyncio.ensure_future(sample(REQUEST))
        await provider.asked.wait()
        assert provider.open == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert provider.open == 0


async def used(made: ChatRoom, chat: Chat) -> str:
    """Runs a turn, allows its call and sends each form as it is; the result of the call."""
    turn = await made.say(chat)
    seen: set[str] = set()

    def is_new(body: EventBody) -> bool:
        return isinstance(body, ApprovalRequired | InputRequired) and body.key not in seen

    result = asyncio.ensure_future(made.result(turn.run_id))
    while not result.done():
        step = asyncio.ensure_future(made.event(turn.run_id, is_new))
        await asyncio.wait({step, result}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        if not step.done() or step.exception() is not None:
            step.cancel()
            break
        body = step.result()
        assert isinstance(body, ApprovalRequired | InputRequired)
        seen.add(body.key)
        if isinstance(body, ApprovalRequired):
            await made.chats.decide(chat, body.key, "allow")
        else:
            await made.chats.answer_input(chat, body.key, "accept", {})
    await result
    (call,) = [data for data in log_of(chat) if isinstance(data, Call)]
    return call.result or ""


async def test_a_server_of_the_chat_gets_what_its_model_says() -> None:
    answers = [calls(("features__summarise", {"text": "hi"})), says("words"), says("done")]
    async with room(*answers) as made, listening(build_server().streamable_http_app()) as port:
        chat = await made.new_chat()
        url = f"http://127.0.0.1:{port}/mcp"
        made.chats.servers.of(chat).connect(ServerSpec("features", "http", url=url))
        assert await used(made, chat) == "demo:demo (endTurn): words"
        sampled = made.provider.requests[1]
        assert [each.text for each in sampled.messages] == [
            "hi",
            "[picture, image/png, 3 bytes: not sent]",
        ]
        await made.chats.servers.aclose()


async def test_only_the_servers_of_a_chat_learn_of_its_folder(tmp_path: Path) -> None:
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        own = ServerSpec("own", "http", url=url)
        host = ServerSpec("host", "http", url=url)
        answers = [calls(("own__roots", {})), says("ok"), calls(("host__can", {})), says("ok")]
        more: dict[str, Any] = {"host": [host], "folder": lambda chat: tmp_path / chat.id}
        async with room(*answers, **more) as made:
            chat, other = await made.new_chat(), await made.new_chat()
            made.chats.servers.of(chat).connect(own)
            folder = tmp_path / chat.id
            assert await used(made, chat) == f"{chat.id} {folder.as_uri()}"
            assert folder.is_dir()
            assert "roots" not in await used(made, other)
