"""A run that is left or stopped while nobody performs it: the model can be sent all that it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.kept import Restarts, at_rest, shows
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.ui.test_durable_chats import WRITE
from web.harness.values.messages import Message, ThinkingBlock, ToolResultBlock
from web.harness.values.model import TextChunk, ThinkingChunk

pytestmark = pytest.mark.anyio

ADD = ("calculate", {"expression": "20 + 22"})
NEVER = asyncio.Event()
THOUGHT = ThinkingChunk("I count.", "sealed")


async def sent_after(stage: Restarts, chat: str, run: str) -> Sequence[Message]:
    """What a model is sent with the next message, once a run was left."""
    stage.settings["resume"] = "ask"
    provider = ScriptedProvider(says("Well."))
    async with stage.server(provider) as server:
        await shows(server, chat, "Leave it")
        answer = await server.client.post(f"/api/runs/{run}/leave")
        assert answer.status_code == 202, answer.text
        await at_rest(server, chat)
        await server.send(chat, "And now?")
        await at_rest(server, chat)
    return provider.requests[0].messages


async def test_what_was_written_down_is_kept_as_it_was_and_the_text_that_followed(
    stage: Restarts,
) -> None:
    first = ScriptedProvider([THOUGHT, *calls(ADD)], [TextChunk("It is "), NEVER])
    async with stage.server(first) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "How much?")
        await server.wait_for(run, "text_delta")
    sent = await sent_after(stage, chat, run)
    before = first.requests[1].messages
    assert isinstance(before[1].content[0], ThinkingBlock)
    assert sent[:3] == before
    assert [each.text for each in sent[3:]] == ["It is ", "And now?"]
    assert [each.parent_id for each in sent[1:]] == [each.id for each in sent[:-1]]


async def test_calls_that_were_open_have_words_for_a_result(stage: Restarts) -> None:
    async with stage.server(ScriptedProvider([THOUGHT, *calls(ADD, WRITE)])) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Count and write.")
        await server.wait_for(run, "approval_required")
        await server.wait_for(run, "tool_result")
    sent = await sent_after(stage, chat, run)
    assert [each.role for each in sent] == ["user", "assistant", "tool", "user"]
    assert isinstance(sent[1].content[0], ThinkingBlock)
    gave, open_ = sent[2].content
    assert isinstance(gave, ToolResultBlock)
    assert isinstance(open_, ToolResultBlock)
    assert (gave.is_error, gave.text) == (False, "42")
    assert (open_.is_error, open_.text) == (
        True,
        "This was not finished: the answer was ended before.",
    )
