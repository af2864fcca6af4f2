"""Pictures in a run: attached, brought by tools, and done without where a model refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.agent.agents import agent_for, all_events, of_type
from tests.support.pictures import picture
from tests.support.scripted_provider import ScriptedProvider, Step, calls, says
from web.harness.agent.agent import Agent
from web.harness.agent.run import WITHOUT_PICTURES
from web.harness.memory.conversation import KEPT_PICTURE_BYTES, Conversation
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolOutput
from web.harness.values.errors import PicturesRefused
from web.harness.values.events import ErrorReport, Event, Note, ToolResult, event_data
from web.harness.values.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from web.harness.values.model import ModelDone, NoteChunk, TextChunk
from web.harness.values.pictures import has_pictures

pytestmark = pytest.mark.anyio

PLAN, SHOT = picture("plan.png"), picture("shot.png")
REFUSES: list[Step] = [PicturesRefused("No pictures, please.", hint="Another model does.")]


def shooting() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register(permission=PermissionLevel.ALLOW)
    def shoot() -> ToolOutput:
        return ToolOutput((TextBlock("Done."), SHOT))

    @registry.register(permission=PermissionLevel.ALLOW)
    def shoot_only() -> Any:
        return SHOT

    return registry


async def with_picture(agent: Agent) -> list[Event]:
    async with agent.run_stream("What is it?", attachments=[PLAN]) as events:
        return [event async for event in events]


def seen(agent: Agent) -> list[list[bool]]:
    """Of each request, of each message: whether it holds a picture."""
    provider = agent._providers.get(agent.config.model)
    assert isinstance(provider, ScriptedProvider)
    return [list(map(has_pictures, request.messages)) for request in provider.requests]


async def test_an_attached_picture_is_part_of_the_message() -> None:
    agent = agent_for(says("A plan."))
    await with_picture(agent)
    assert agent.memory.get_messages()[0].content == (PLAN, TextBlock("What is it?"))
    assert seen(agent) == [[True]]


@pytest.mark.parametrize(
    ("name", "content"), [("shoot", (TextBlock("Done."), SHOT)), ("shoot_only", (SHOT,))]
)
async def test_a_tool_brings_a_picture_to_the_model(name: str, content: tuple[Any, ...]) -> None:
    agent = agent_for(calls((name, {})), says("Nice."), tools=shooting())
    events = await all_events(agent)
    (result,) = agent.memory.get_messages()[2].content
    assert isinstance(result, ToolResultBlock)
    assert result.content == content
    assert seen(agent) == [[False], [False, False, True]]
    (shown,) = of_type(events, ToolResult)
    assert shown.text == result.text


async def test_no_event_holds_the_bytes_of_a_picture() -> None:
    agent = agent_for(calls(("shoot", {})), says("Nice."), tools=shooting())
    for event in await with_picture(agent):
        assert "PNG" not in json.dumps(event_data(event.body))


async def test_a_model_that_refuses_pictures_is_asked_again_without_them_and_it_is_said() -> None:
    answers = [REFUSES, calls(("shoot", {})), says("I cannot see it.")]
    agent = agent_for(*answers, tools=shooting())
    events = await with_picture(agent)
    assert of_type(events, Note) == [Note(WITHOUT_PICTURES, "No pictures, please.")]
    assert events[-1].body.text == "I cannot see it."  # type: ignore[union-attr]
    # The rest of the run does without, and the conversation keeps them for another model.
    assert seen(agent) == [[True], [False], [False, False, False]]
    assert has_pictures(agent.memory.get_messages()[0])
    provider = agent._providers.get(agent.config.model)
    assert isinstance(provider, ScriptedProvider)
    (left,) = provider.requests[1].messages[0].pictures
    assert left.line.endswith("left out, this model did not take the pictures of this chat]")


async def test_a_model_that_refuses_even_then_ends_the_run_with_a_hint() -> None:
    agent = agent_for(REFUSES, REFUSES)
    events = await with_picture(agent)
    (error,) = of_type(events, ErrorReport)
    assert (error.code, error.hint) == ("provider_pictures_refused", "Another model does.")
    assert len(seen(agent)) == 2


async def test_what_a_provider_leaves_out_is_said_once_a_run() -> None:
    note = NoteChunk("Picture plan.png: left out.")
    first = [note, *calls(("shoot", {}))]
    agent = agent_for(first, [note, TextChunk("Hm."), ModelDone("end_turn")], tools=shooting())
    assert of_type(await with_picture(agent), Note) == [Note("Picture plan.png: left out.")]


def test_a_conversation_keeps_the_newest_pictures_and_names_the_others() -> None:
    third = picture("", size=KEPT_PICTURE_BYTES // 3)
    conversation = Conversation()
    for number in range(5):
        conversation.append(Message(f"{number}", "user", (third, TextBlock("hi"))))
    messages = conversation.get_messages()
    assert list(map(has_pictures, messages)) == [False, False, True, True, True]
    (oldest,) = messages[0].pictures
    assert isinstance(oldest, ImageBlock)
    assert (oldest.data, oldest.sha256) == (b"", third.sha256)
    assert oldest.line.endswith("left out, newer ones took its place]")
