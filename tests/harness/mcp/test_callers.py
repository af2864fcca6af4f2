"""A question of a shared server that names no call is told to nobody whom it may not be for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from mcp.client import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    ElicitRequestFormParams,
    ElicitResult,
    ErrorData,
    SamplingMessage,
    TextContent,
)

from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.callers import calling_for
from web.harness.mcp.calls import Call, Calls

pytestmark = pytest.mark.anyio

CONTEXT = cast(ClientRequestContext, None)
QUESTION = ElicitRequestFormParams(
    message="Which account?", requested_schema={"type": "object", "properties": {}}
)

SAID = SamplingMessage(role="user", content=TextContent(type="text", text="Hello"))


class Room:
    """Calls of several people on one connection, and what each was asked."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.calls = Calls("bank", lambda level, words: self.said.append(words))
        self.over = asyncio.Event()

    async def call(self, whose: str, begun: asyncio.Event) -> None:
        async def ask(question: Elicitation) -> ElicitationAnswer:
            self.asked.append(whose)
            return ElicitationAnswer("accept", {})

        with calling_for(whose):
            call = Call(60, None, ask)
        with self.calls.entered(call):
            begun.set()
            await self.over.wait()

    async def ask_while(self, *people: str) -> tuple[ElicitResult, Any]:
        """What the server is answered while these people call it."""
        async with asyncio.TaskGroup() as group:
            for each in people:
                begun = asyncio.Event()
                group.create_task(self.call(each, begun))
                await begun.wait()
            answer = await self.calls.elicit(CONTEXT, QUESTION)
            sampled = await self.calls.sample(
                CONTEXT, CreateMessageRequestParams(messages=[SAID], max_tokens=10)
            )
            self.over.set()
        return answer, sampled


async def test_while_several_people_call_it_is_declined() -> None:
    room = Room()
    answer, sampled = await room.ask_while("ann", "bob")
    assert (answer.action, room.asked) == ("decline", [])
    assert isinstance(sampled, ErrorData)
    assert len([words for words in room.said if "Several people were calling" in words]) == 2


async def test_while_one_person_calls_it_is_put_with_the_last_call() -> None:
    room = Room()
    answer, _ = await room.ask_while("ann", "ann")
    assert (answer.action, room.asked) == ("accept", ["ann"])
