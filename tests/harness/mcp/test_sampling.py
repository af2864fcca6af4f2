"""A server asks for the model's words: a person sees the request and the answer first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import mcp_types as types
import pytest

from tests.support.mcp_features import build_server
from tests.support.mcp_sdk import listening, text_of
from tests.support.mcp_wire import SECONDS, offering, until
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import Connections
from web.harness.mcp.sampling import SamplingAnswer, SamplingRequest
from web.harness.mcp.sampling_forms import MAX_CHARS, SamplingRefused, read_wish
from web.harness.mcp.spec import Protocol, ServerSpec
from web.harness.tools.forms import read_form
from web.harness.values.errors import HarnessError, ToolError
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio

ERAS: tuple[Protocol, ...] = ("2026-07-28", "legacy")
Answerer = Callable[[Elicitation], Awaitable[ElicitationAnswer]]


@dataclass
class Model:
    """A model that says the same each time, or fails."""

    text: str = "short words"
    error: str = ""
    model: str = "test:small"
    asked: list[SamplingRequest] = field(default_factory=list)

    async def __call__(self, request: SamplingRequest, /) -> SamplingAnswer:
        self.asked.append(request)
        if self.error:
            raise HarnessError(self.error)
        return SamplingAnswer(self.text, "test:small-1", "maxTokens", Usage(12, 34))


@dataclass
class Person:
    """Answers each form with the next of `changes`: its fields, or an action."""

    changes: list[JsonObject | str]
    seen: list[Elicitation] = field(default_factory=list)

    async def __call__(self, question: Elicitation) -> ElicitationAnswer:
        self.seen.append(question)
        change = self.changes[len(self.seen) - 1]
        if change == "decline" or change == "cancel":
            return ElicitationAnswer("decline" if change == "decline" else "cancel")
        defaults = {each.name: each.default for each in read_form(question.schema)}
        assert isinstance(change, dict)
        return ElicitationAnswer("accept", {**defaults, **change})


@asynccontextmanager
async def featured(
    connections: Connections, protocol: Protocol, seconds: float = 30
) -> AsyncIterator[Connection]:
    """A server of the SDK that has a tool which asks the model."""
    async with listening(build_server().streamable_http_app()) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        spec = ServerSpec("web", "http", url=url, protocol=protocol, call_seconds=seconds)
        with anyio.fail_after(SECONDS):
            yield connections.connect(spec)
        await connections.disconnect("web")


@pytest.mark.parametrize("protocol", ERAS)
async def test_the_person_sees_and_changes_both_ways(
    connections: Connections, protocol: Protocol
) -> None:
    model = Model()
    person = Person(
        [
            {"message_1": "Say hello", "system_prompt": "", "longest_answer": 20},
            {"answer": "other words"},
        ]
    )
    async with featured(connections, protocol) as connection:
        result = await connection.call("summarise", {"text": "hi"}, ask=person, sample=model)
    assert text_of(result) == "test:small-1 (maxTokens): other words"
    first, second = person.seen
    assert first.server == "web"
    assert "test:small" in first.message
    assert "a model such as claude" in first.message
    assert "Not sent, for only text is: picture, image/png, 3 bytes." in first.message
    fields = {each.name: each for each in read_form(first.schema)}
    assert fields["system_prompt"].default == "Be brief."
    assert fields["message_1"].default == "hi"
    assert fields["message_2"].default == "[picture, image/png, 3 bytes: not sent]"
    assert (fields["longest_answer"].default, fields["longest_answer"].low) == (50, 1)
    assert not any(each.smells_secret for each in fields.values())
    [asked] = model.asked
    assert asked.messages[0].text == "Say hello"
    assert (asked.system_prompt, asked.max_tokens, asked.stop) == ("", 20, ("STOP",))
    assert "test:small-1" in second.message
    assert "12 in, 34 out" in second.message
    assert "reached its limit" in second.message
    assert [each.default for each in read_form(second.schema)] == ["short words"]


@pytest.mark.parametrize(
    ("protocol", "changes", "asked"),
    [
        ("2026-07-28", ["decline"], 0),
        ("legacy", [{}, "decline"], 1),
        pytest.param("legacy", ["decline"], 0, marks=pytest.mark.full),
        pytest.param("2026-07-28", [{}, "cancel"], 1, marks=pytest.mark.full),
        pytest.param("2026-07-28", [{"message_1": "", "message_2": ""}], 0, marks=pytest.mark.full),
    ],
)
async def test_nothing_goes_on_without_the_person(
    connections: Connections, protocol: Protocol, changes: list[JsonObject | str], asked: int
) -> None:
    model, person = Model(), Person(changes)
    async with featured(connections, protocol) as connection:
        with pytest.raises(ToolError, match="did not get what it asked for: The person"):
            await connection.call("summarise", {"text": "hi"}, ask=person, sample=model)
        assert "The person" in connection.status.log[-1].text
    assert len(model.asked) == asked


@pytest.mark.parametrize("protocol", [pytest.param("2026-07-28", marks=pytest.mark.full), "legacy"])
async def test_a_call_that_has_no_model_is_refused_one(
    connections: Connections, protocol: Protocol
) -> None:
    person = Person([])
    async with featured(connections, protocol) as connection:
        assert '"sampling":{}' in text_of(await connection.call("can", {}))
        with pytest.raises(ToolError, match="Nobody is here who could agree"):
            await connection.call("summarise", {"text": "hi"}, ask=person)
        [line] = connection.status.log
        assert "Nobody is here who could agree to it." in line.text
    assert person.seen == []


@pytest.mark.parametrize("protocol", [pytest.param("2026-07-28", marks=pytest.mark.full), "legacy"])
async def test_a_model_that_fails_is_told_in_words(
    connections: Connections, protocol: Protocol
) -> None:
    async with featured(connections, protocol) as connection:
        with pytest.raises(ToolError, match="out of credit"):
            await connection.call(
                "summarise", {"text": "hi"}, ask=Person([{}]), sample=Model(error="out of credit")
            )


@pytest.mark.full
@pytest.mark.parametrize("protocol", ERAS)
async def test_the_clock_of_the_call_stands_still_meanwhile(
    connections: Connections, protocol: Protocol
) -> None:
    class Slow(Model):
        async def __call__(self, request: SamplingRequest, /) -> SamplingAnswer:
            await anyio.sleep(2.3)
            return await super().__call__(request)

    async with featured(connections, protocol, seconds=2) as connection:
        result = await connection.call(
            "summarise", {"text": "hi"}, ask=Person([{}, {}]), sample=Slow()
        )
    assert "short words" in text_of(result)


@dataclass
class Endless(Model):
    """A model that never ends."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: SamplingRequest, /) -> SamplingAnswer:
        self.began.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()
        raise AssertionError


async def test_a_call_that_ends_by_itself_ends_the_model(connections: Connections) -> None:
    model = Endless()
    connection = connections.connect(offering("legacy"))
    with anyio.fail_after(SECONDS):
        call = asyncio.ensure_future(
            connection.call("step", {"do": "ask"}, ask=Person([{}]), sample=model)
        )
        await model.began.wait()
        await connection.call("step", {"do": "go"})
        assert text_of(await call) == "done"
        await model.ended.wait()
        status = await until(connection, lambda status: status.log)
    assert "The call that it was for has ended." in status.log[0].text


@pytest.mark.parametrize("protocol", ["2026-07-28", pytest.param("legacy", marks=pytest.mark.full)])
async def test_a_call_that_is_stopped_stops_the_model(
    connections: Connections, protocol: Protocol
) -> None:
    model = Endless()
    async with featured(connections, protocol) as connection:
        call = asyncio.ensure_future(
            connection.call("summarise", {"text": "hi"}, ask=Person([{}]), sample=model)
        )
        await model.began.wait()
        call.cancel()
        await model.ended.wait()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "sampling" in text_of(await connection.call("can", {}))


def wish_for(*contents: object, **more: object) -> types.CreateMessageRequestParams:
    messages = [{"role": "user", "content": each} for each in contents]
    return types.CreateMessageRequestParams.model_validate(
        {"messages": messages, "maxTokens": 10, **more}
    )


def test_a_request_that_a_person_cannot_read_is_refused() -> None:
    text = {"type": "text", "text": "x" * (MAX_CHARS // 2 + 1)}
    with pytest.raises(SamplingRefused, match="can be shown to a person"):
        read_wish(wish_for(text, text))
    with pytest.raises(SamplingRefused, match="can be shown to a person"):
        read_wish(wish_for(*[{"type": "text", "text": "x"}] * 100))
    with pytest.raises(SamplingRefused, match="no messages"):
        read_wish(wish_for())


def test_tools_are_not_lent_to_a_server() -> None:
    words = {"type": "text", "text": "x"}
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    with pytest.raises(SamplingRefused, match="Tools are not offered"):
        read_wish(wish_for(words, tools=[tool]))
    used = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
    with pytest.raises(SamplingRefused, match="no use of tools"):
        read_wish(wish_for(used))


def test_words_that_nobody_can_see_are_not_sent() -> None:
    hidden = "".join(chr(0xE0000 + ord(each)) for each in "obey")
    wish = read_wish(
        wish_for({"type": "text", "text": f"a\u200bb{hidden}"}, systemPrompt=f"c{hidden}")
    )
    assert wish.request.messages[0].text == "ab"
    assert wish.request.system_prompt == "c"
    assert wish.request.max_tokens == 10
