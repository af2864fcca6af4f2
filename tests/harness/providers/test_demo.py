"""The demo model: every feature of the product can be asked for in plain words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.asking import Gathered, asked, gather
from web.harness.providers import make_provider
from web.harness.providers.demo.arguments import arguments_of, raw_arguments
from web.harness.providers.demo.provider import DemoProvider
from web.harness.values.errors import ProviderError
from web.harness.values.messages import (
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ModelRequest, ToolSpec

pytestmark = pytest.mark.anyio


def tool(name: str, description: str = "", **properties: Any) -> ToolSpec:
    """A tool; a parameter whose name ends in `_` is optional."""
    schema = {
        "type": "object",
        "properties": {key.rstrip("_"): value for key, value in properties.items()},
        "required": [key for key in properties if not key.endswith("_")],
    }
    return ToolSpec(name, description, schema)


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOLEAN, ARRAY = {"type": "boolean"}, {"type": "array", "items": {"type": "integer"}}

TOOLS = (
    tool("calculate", "Evaluates an arithmetic expression.", expression=STRING),
    tool("current_time", "Tells the date and time.", timezone_=STRING),
    tool("write_file", "Writes text to a file in this chat's folder.", path=STRING, content=STRING),
    tool("read_file", "Reads a file of this chat's folder.", path=STRING),
    tool("wait", "Waits for some seconds.", seconds=NUMBER),
    tool("list_files", "Lists the files in this chat's folder."),
    tool(
        "make_chart",
        "Draws a chart of some values.",
        kind={"type": "string", "enum": ["Bar", "Line"]},
        values=ARRAY,
        width_=INTEGER,
        scale_=NUMBER,
        legend_=BOOLEAN,
        style_={"anyOf": [{"type": "object"}, {"type": "null"}]},
    ),
    tool("weather__get_forecast", "Weather forecast for a city.", city=STRING, days_=INTEGER),
)


async def ask(request: ModelRequest, provider: DemoProvider | None = None) -> Gathered:
    return await gather(provider or DemoProvider(pace=0), request)


async def say(*texts: str) -> Gathered:
    return await ask(asked(*texts, tools=TOOLS))


async def calls_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = await say(text)
    blocks = found.done.tool_uses
    assert found.done.stop_reason == ("tool_use" if blocks else "end_turn")
    for index, block in enumerate(blocks):
        mine = [chunk for chunk in found.calls if chunk.index == index]
        assert json.loads("".join(chunk.arguments for chunk in mine)) == block.arguments
        assert {(chunk.id, chunk.name) for chunk in mine} == {(block.id, block.name)}
    return [(block.name, block.arguments) for block in blocks]


class Chat:
    """Keeps a conversation with the demo model; `results` answer its calls in turn."""

    def __init__(self, *results: str | ToolResultBlock) -> None:
        self._results = list(results)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.ids: list[str] = []
        self._messages: list[Message] = []

    async def say(self, text: str) -> str:
        """The last answer, after all calls were answered."""
        self._add("user", TextBlock(text))
        for _ in range(10):
            found = await ask(ModelRequest("demo", tuple(self._messages), tools=TOOLS))
            calls = found.done.tool_uses
            self._add("assistant", TextBlock(found.text), *calls)
            if not calls:
                return found.text
            self.calls += [(call.name, call.arguments) for call in calls]
            self.ids += [call.id for call in calls]
            self._add("tool", *(self._answer(call) for call in calls))
        raise AssertionError("the demo model never ended its turn")

    def _answer(self, call: ToolUseBlock) -> ToolResultBlock:
        result = self._results.pop(0)
        if isinstance(result, str):
            return ToolResultBlock(call.id, (TextBlock(result),))
        return ToolResultBlock(call.id, result.content, result.is_error)

    def _add(self, role: Any, *content: Any) -> None:
        self._messages.append(Message(f"m{len(self._messages)}", role, content))


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('/write_file {"path": "note.txt", "content": "hello"}', "write_file", None),
        ("/write_file path=note.txt content=hello", "write_file", None),
        ("/write_file path='note.txt' content=\"hello\"", "write_file", None),
        ("write a file note.txt saying hello", "write_file", None),
        ("Please create a file called note.txt with the text hello", "write_file", None),
        ("save hello to note.txt", "write_file", None),
        ("/calculate 12*7", "calculate", {"expression": "12*7"}),
        ("calculate 12*7", "calculate", {"expression": "12*7"}),
        ("What is 12 * 7?", "calculate", {"expression": "12 * 7"}),
        ("what time is it", "current_time", {}),
        ("/current_time", "current_time", {}),
        ("what time is it in New York?", "current_time", {"timezone": "New York"}),
        ("wait 3 seconds", "wait", {"seconds": 3}),
        ("list my files", "list_files", {}),
        ("Which files do I have?", "list_files", {}),
        ("read note.txt", "read_file", {"path": "note.txt"}),
        ("/READ-FILE note.txt", "read_file", {"path": "note.txt"}),
        ("/get_forecast New York", "weather__get_forecast", {"city": "New York"}),
        ("get forecast for Oslo", "weather__get_forecast", {"city": "Oslo"}),
        (
            "/get_forecast city=New York days=3",
            "weather__get_forecast",
            {"city": "New York", "days": 3},
        ),
        (
            "/make_chart kind=bar values=[1,2] width=300 scale=1.5 legend=yes style=null",
            "make_chart",
            {
                "kind": "Bar",
                "values": [1, 2],
                "width": 300,
                "scale": 1.5,
                "legend": True,
                "style": None,
            },
        ),
        (
            "use make_chart with kind=Line values=1,2,3",
            "make_chart",
            {"kind": "Line", "values": [1, 2, 3]},
        ),
    ],
)
async def test_a_tool_is_called_as_a_person_would_ask(
    text: str, name: str, arguments: dict[str, Any] | None
) -> None:
    expected = {"path": "note.txt", "content": "hello"} if arguments is None else arguments
    assert await calls_of(text) == [(name, expected)]


@pytest.mark.parametrize(
    ("typed", "schema", "arguments"),
    [
        ("7", {"count": INTEGER}, {"count": 7}),
        ("3 4.5", {"a": INTEGER, "b": NUMBER}, {"a": 3, "b": 4.5}),
        ("some words", {"n_": INTEGER, "query": STRING}, {"query": "some words"}),
        ("a=b=c d", {"a": STRING}, {"a": "b=c d"}),
        ("text=x=1 then y", {"text": STRING}, {"text": "x=1 then y"}),
        (
            'tags=["a","b"] on=false',
            {"tags": ARRAY, "on": BOOLEAN},
            {"tags": ["a", "b"], "on": False},
        ),
        ("", {"a": STRING}, {}),
    ],
)
async def test_arguments_take_the_types_of_the_schema(
    typed: str, schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert arguments_of(tool("t", **schema), typed) == arguments


async def test_references_in_a_schema_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"level": {"$ref": "#/$defs/Level"}},
        "$defs": {"Level": {"enum": [1, 2]}},
    }
    assert arguments_of(ToolSpec("t", "", schema), "level=2") == {"level": 2}


async def test_broken_json_goes_out_as_it_was_typed() -> None:
    found = await say('/calculate {"expression": ')
    assert found.done.tool_uses[0].malformed == '{"expression":'
    assert raw_arguments(TOOLS[0], '{"a": 1}') == '{"a": 1}'


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    found = await say("/no_such_tool 1")
    assert not found.done.tool_uses
    assert "`no_such_tool`" in found.text
    assert all(f"`{item.name}`" in found.text for item in TOOLS)
    assert "no skill that is switched on" in found.text


@pytest.mark.parametrize("text", ["help", "hello", "", "Tell me about the meaning of life"])
async def test_what_is_not_understood_is_answered_with_what_to_try(text: str) -> None:
    found = await say(text)
    assert "no AI" in found.text.split("\n")[0]
    assert "/calculate expression=6*7" in found.text
    assert "long 2000" in found.text
    assert not found.done.tool_uses


async def test_the_result_is_told_in_markdown() -> None:
    chat = Chat("one\n```\ntwo")
    text = await chat.say("list my files")
    assert "`list_files` returned:\n\n````text\none\n```\ntwo\n````" in text
    assert "no AI" in text.split("\n")[0]


async def test_a_failed_call_is_told_as_such_and_ends_the_chain() -> None:
    chat = Chat(ToolResultBlock("", (TextBlock("denied: not now"),), is_error=True))
    text = await chat.say("/calculate 1+1 then /list_files")
    assert "`calculate` did not work" in text
    assert "denied: not now" in text
    assert "1 further step was not taken" in text
    assert [name for name, _ in chat.calls] == ["calculate"]


async def test_calls_are_chained_and_the_last_result_is_passed_on() -> None:
    chat = Chat('4"2', "saved", "again")
    text = await chat.say("calculate 6*7 then /write_file path=answer.txt content={result}")
    assert chat.calls == [
        ("calculate", {"expression": "6*7"}),
        ("write_file", {"path": "answer.txt", "content": '4"2'}),
    ]
    assert "saved" in text
    await chat.say("list my files")
    assert len(set(chat.ids)) == len(chat.ids) == 3


@pytest.mark.parametrize("second", ["/calculate {result} + 1", "calculate {result} + 1"])
async def test_words_may_begin_with_the_last_result(second: str) -> None:
    chat = Chat("42", "43")
    await chat.say(f"/calculate 6*7 then {second}")
    assert chat.calls[1] == ("calculate", {"expression": "42 + 1"})


async def test_then_in_an_argument_parts_nothing() -> None:
    first = await calls_of('/write_file {"path": "a.txt", "content": "one then /list_files"}')
    assert first == [("write_file", {"path": "a.txt", "content": "one then /list_files"})]
    second = await calls_of("write a file a.txt saying first this then that")
    assert second == [("write_file", {"path": "a.txt", "content": "first this then that"})]


async def test_then_in_brackets_parts_nothing() -> None:
    found = await calls_of("/write_file path=a.txt content={x then /list_files}")
    assert found == [("write_file", {"path": "a.txt", "content": "{x then /list_files}"})]


async def test_several_calls_come_in_one_answer() -> None:
    text = 'parallel: /calculate 1+1 ; /write_file {"path": "a;b", "content": "x"} ; /list_files'
    assert await calls_of(text) == [
        ("calculate", {"expression": "1+1"}),
        ("write_file", {"path": "a;b", "content": "x"}),
        ("list_files", {}),
    ]
    chat = Chat("2", "a.txt", "3")
    answer = await chat.say("parallel: /calculate 1+1 ; /list_files then /calculate 1+{result}")
    assert [name for name, _ in chat.calls] == ["calculate", "list_files", "calculate"]
    assert answer.index("`2`") < answer.index("`a.txt`") < answer.index("`3`")


@pytest.mark.parametrize(
    "text",
    [
        "parallel: what time is it ; calculate 3*3",
        "parallel: what time is it; /calculate 3*3",
        "Parallel:\nwhat time is it\ncalculate 3*3",
        "parallel: what time is it and calculate 3*3",
    ],
)
async def test_several_calls_may_be_asked_for_in_plain_words(text: str) -> None:
    assert await calls_of(text) == [("current_time", {}), ("calculate", {"expression": "3*3"})]


@pytest.mark.parametrize("separator", [" ; ", ", ", "\n"])
async def test_a_part_that_asks_for_no_tool_is_told_and_nothing_is_called(separator: str) -> None:
    found = await say(f"parallel: what time is it{separator}dance the polka")
    assert not found.done.tool_uses
    assert "called nothing" in found.text
    assert "`dance the polka`" in found.text


async def test_parallel_alone_is_answered_with_what_to_try() -> None:
    found = await say("parallel:")
    assert not found.done.tool_uses
    assert "Try one of these" in found.text


async def test_a_result_that_is_a_sentence_has_one_full_stop() -> None:
    text = await Chat("Wrote 5 characters to a.txt.").say("save hello to a.txt")
    assert text.endswith("`write_file` returned `Wrote 5 characters to a.txt.`\n")
    assert (await Chat("42").say("calculate 6*7")).endswith("returned `42`.\n")


async def test_the_pace_is_kept_in_real_time_and_tokens_come_one_by_one() -> None:
    found = await ask(asked("long 20"), DemoProvider(pace=2000))
    assert found.reads == len(found.chunks)
    fast = await ask(asked("long 2000 fast"), DemoProvider(pace=0.001))
    assert len(fast.text.split()) > 2000


async def test_thinking_is_shown_before_the_answer_or_the_call() -> None:
    found = await say("think about lunch")
    assert found.thinking
    assert "lunch" in found.text
    called = await say("think hard, then /calculate 6*7")
    assert called.thinking
    assert called.done.tool_uses[0].arguments == {"expression": "6*7"}


async def test_a_failure_is_shown_on_request() -> None:
    found = Gathered()
    with pytest.raises(ProviderError) as caught:
        await gather(DemoProvider(pace=0), asked("fail"), found)
    assert (caught.value.code, caught.value.transient) == ("demo_failure", False)
    assert found.text


async def test_a_transient_failure_happens_once_for_each_message() -> None:
    provider = DemoProvider(pace=0)
    for number in range(2):
        message = Message(f"m{number}", "user", (TextBlock("fail once"),))
        request = ModelRequest("demo", (message,))
        with pytest.raises(ProviderError) as caught:
            await gather(provider, request)
        assert caught.value.transient
        for _ in range(2):
            found = await gather(provider, request)
            assert found.done.stop_reason == "end_turn"
            assert "second one" in found.text


async def test_refusals_and_empty_answers_are_shown_on_request() -> None:
    assert (await say("refuse")).done.stop_reason == "refusal"
    empty = await say("empty")
    assert (empty.text, empty.done.stop_reason) == ("", "end_turn")


async def test_usage_is_estimated_from_what_was_sent_and_said() -> None:
    found = await say("long 100")
    assert found.done.usage.output_tokens == -(-len(found.text) // 4)
    more = await say("long 100" + " " * 4000)
    assert more.done.usage.input_tokens >= found.done.usage.input_tokens + 1000


async def test_the_demo_needs_no_key() -> None:
    provider = make_provider("demo")
    assert isinstance(provider, DemoProvider)
    await provider.aclose()
