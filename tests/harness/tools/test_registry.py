"""Tools are registered, offered and run, and whatever goes wrong in one is a result."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest

from web.harness.tools.functions import function_tool
from web.harness.tools.outputs import (
    MAX_PART_CHARS,
    MAX_PARTS,
    MAX_TITLE_CHARS,
    MAX_URI_CHARS,
)
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.errors import ConfigurationError, LimitExceeded, ToolError
from web.harness.values.events import ResultPart
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext("call-1", "run-1", "chat-1", {"key": "value"})


@dataclass
class Place:
    city: str
    since: date


async def run_one(
    function: Callable[..., Any], arguments: JsonObject | None = None, **options: Any
) -> ToolOutput:
    registry = ToolRegistry([function_tool(function, name="tool")])
    call = registry.run("tool", arguments or {}, CONTEXT, options.pop("timeout", 10), **options)
    async with asyncio.timeout(10):
        return await call


def test_a_function_is_registered_with_and_without_options() -> None:
    registry = ToolRegistry()

    @registry.register
    def first(value: int) -> int:
        """Gives it back."""
        return value

    @registry.register(
        name="other",
        description="Something else.",
        permission=PermissionLevel.ALLOW,
        timeout_seconds=3,
        replay="safe",
    )
    async def second() -> None: ...

    assert first(3) == 3
    plain, other = registry
    assert (plain.name, plain.permission, plain.replay) == ("first", PermissionLevel.ASK, "manual")
    assert (other.name, other.description, other.timeout_seconds) == ("other", "Something else.", 3)
    assert (other.permission, other.replay) == (PermissionLevel.ALLOW, "safe")
    assert [spec.name for spec in registry.specs()] == ["first", "other"]
    assert registry.specs()[0].description == "Gives it back."
    assert registry.specs()[0].input_schema["required"] == ["value"]


def test_a_tool_can_be_found_and_taken_out() -> None:
    registry = ToolRegistry([function_tool(lambda: None, name="a")])
    assert "a" in registry
    found = registry.get("a")
    assert found is not None
    assert found.name == "a"
    registry.remove("a")
    registry.remove("a")
    assert registry.get("a") is None
    assert len(registry) == 0


def test_a_denied_tool_is_not_offered() -> None:
    registry = ToolRegistry(function_tool(lambda: None, name=name) for name in ("a", "b"))
    assert [spec.name for spec in registry.specs(Permissions({"a": "deny"}))] == ["b"]


@pytest.mark.parametrize(
    "name", ["", "two words", "dot.ted", "x" * 65, "ümlaut", "a\n", "<lambda>"]
)
def test_a_name_that_models_do_not_take_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name for a tool"):
        ToolRegistry([function_tool(lambda: None, name=name)])


def test_a_second_tool_of_the_same_name_is_refused() -> None:
    registry = ToolRegistry([function_tool(lambda: None, name="a")])
    with pytest.raises(ConfigurationError, match="There is a tool 'a' already"):
        registry.add(function_tool(lambda: None, name="a"))


def test_a_generator_is_refused() -> None:
    def generator() -> Any:
        yield 1

    async def async_generator() -> Any:
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(ConfigurationError, match="generator"):
            function_tool(function)


def test_an_unknown_tool_is_answered_with_near_names() -> None:
    registry = ToolRegistry(function_tool(lambda: None, name=n) for n in ("read_file", "wait"))
    with pytest.raises(ToolError) as caught:
        registry.validate("readfile", {})
    assert "Did you mean 'read_file'?" in caught.value.message
    assert "The tools are: read_file, wait." in caught.value.message


@pytest.mark.parametrize("arguments", [None, [], "x", 3])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    registry = ToolRegistry([function_tool(lambda: None, name="a")])
    with pytest.raises(ToolError, match="one JSON object"):
        registry.validate("a", arguments)


@pytest.mark.parametrize(
    "error", [RuntimeError("odd"), LimitExceeded("odd"), RecursionError("odd")]
)
def test_a_validator_that_fails_is_a_tool_error(error: Exception) -> None:
    def validate(arguments: JsonObject) -> JsonObject:
        raise error

    tool = replace(function_tool(lambda: None, name="a"), validate=validate)
    with pytest.raises(ToolError, match="odd"):
        ToolRegistry([tool]).validate("a", {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (ToolOutput.of("made", is_error=False), "made"),
        ({"a": [1, "ü"]}, '{"a": [1, "ü"]}'),
        (3, "3"),
        (True, "true"),
        (Place("Bonn", date(2020, 1, 2)), '{"city": "Bonn", "since": "2020-01-02"}'),
        ([Place("Bonn", date(2020, 1, 2))], '[{"city": "Bonn", "since": "2020-01-02"}]'),
        (float("inf"), '"Infinity"'),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    ],
)
async def test_what_a_function_returns_becomes_text(value: object, text: str) -> None:
    output = await run_one(lambda: value)
    assert (output.text, output.is_error) == (text, False)
    output.text.encode()


async def test_what_has_no_json_form_is_an_error_result() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (object(), lambda: None, circle, {1: object()}):
        output = await run_one(lambda value=value: value)
        assert output.is_error
        assert "cannot be written as JSON" in output.text


async def test_an_error_result_is_kept_as_it_is() -> None:
    output = await run_one(lambda: ToolOutput.of("no", is_error=True))
    assert (output.text, output.is_error) == ("no", True)


async def test_the_context_is_handed_in_and_coroutines_stay_in_the_loop() -> None:
    async def tool(value: int, context: ToolContext | None = None) -> str:
        assert threading.current_thread() is threading.main_thread()
        assert context is not None
        assert (context.call_id, context.run_id, context.session_id) == (
            "call-1",
            "run-1",
            "chat-1",
        )
        assert context.state is CONTEXT.state
        return f"{context.state['key']}{value}"

    assert (await run_one(tool, {"value": "3"})).text == "value3"


async def test_a_plain_function_runs_in_a_thread_with_the_callers_context() -> None:
    word = contextvars.ContextVar("word", default="")

    def tool() -> str:
        return f"{word.get()} {threading.current_thread() is threading.main_thread()}"

    word.set("here")
    assert (await run_one(tool)).text == "here False"


async def test_a_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    async def inner() -> str:
        return "inner"

    def tool() -> Awaitable[str]:
        return inner()

    assert (await run_one(tool)).text == "inner"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad value"), "ValueError: bad value"),
        (ToolError("Do it so.", hint="Or so."), "Do it so. Or so."),
        (KeyError(), "KeyError"),
        (StopIteration("end"), "RuntimeError: StopIteration: end"),
        (TimeoutError("socket"), "TimeoutError: socket"),
        (ExceptionGroup("many", [ValueError("a")]), "ExceptionGroup: many (1 sub-exception)"),
        (Unspeakable(), "Unspeakable"),
    ],
)
async def test_an_exception_is_an_error_result_without_traceback(
    error: Exception, text: str
) -> None:
    def tool() -> None:
        raise error

    output = await run_one(tool)
    assert (output.text, output.is_error) == (text, True)


async def test_a_long_exception_is_shortened() -> None:
    async def tool() -> None:
        raise ValueError("x" * 100_000)

    output = await run_one(tool)
    assert output.is_error
    assert len(output.text) <= 2000


class Odd(BaseException):
    """No Exception, as some libraries raise."""


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, Odd])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_ends_the_program_is_an_error_result(
    error: type[BaseException], is_async: bool
) -> None:
    def plain() -> str:
        raise error("3")

    async def waiting() -> str:
        raise error("3")

    output = await run_one(waiting if is_async else plain)
    assert output.is_error
    assert error.__name__ in output.text


async def test_a_keyboard_interrupt_passes() -> None:
    error = KeyboardInterrupt

    async def handler(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise error

    registry = ToolRegistry([Tool("tool", "", {"type": "object"}, handler)])
    call = registry.run("tool", {}, CONTEXT, 10)
    # Driven by hand: in a task these would end the test run.
    with pytest.raises(error):
        await call


async def test_bad_arguments_and_unknown_tools_are_error_results() -> None:
    def tool(value: int) -> int:
        return value

    output = await run_one(tool, {"value": "x"})
    assert output.is_error
    assert "- value:" in output.text
    output = await ToolRegistry().run("nothing", {}, CONTEXT, 10)
    assert output.is_error
    assert "There is no tool" in output.text


async def test_a_tool_that_takes_too_long_is_stopped_and_the_limit_is_said() -> None:
    stopped = asyncio.Event()

    async def tool() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    output = await run_one(tool, timeout=0.01)
    assert output.is_error
    assert "limit of 0.01 seconds" in output.text
    assert stopped.is_set()


async def test_a_tools_own_timeout_beats_the_default() -> None:
    async def tool() -> None:
        await asyncio.Event().wait()

    registry = ToolRegistry([function_tool(tool, timeout_seconds=0.01)])
    async with asyncio.timeout(10):
        output = await registry.run("tool", {}, CONTEXT, None)
    assert "limit of 0.01 seconds" in output.text


async def test_a_tool_that_fails_while_it_is_stopped_still_names_the_limit() -> None:
    async def tool() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("broken off") from None

    assert "limit of 0.01 seconds" in (await run_one(tool, timeout=0.01)).text


async def test_a_blocking_function_is_left_behind_at_its_limit() -> None:
    release = threading.Event()

    def tool() -> None:
        release.wait(10)

    output = await run_one(tool, timeout=0.01)
    release.set()
    assert output.is_error
    assert "limit of 0.01 seconds" in output.text


async def test_cancelling_a_call_cancels_the_tool_and_passes_on() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def tool() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(run_one(tool))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert stopped.is_set()


async def test_a_tool_whose_own_work_was_cancelled_is_an_error_result() -> None:
    async def tool() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    output = await run_one(tool)
    assert output.is_error
    assert "cancelled from inside" in output.text


async def test_a_long_result_is_cut_with_words() -> None:
    output = await run_one(lambda: "x" * 5000, max_chars=1000)
    assert len(output.text) == 1000
    assert output.text.startswith("xxx")
    assert output.text.endswith("[Cut here: the result has 5,000 characters, the limit is 1,000.]")
    assert not output.is_error


async def test_a_result_at_the_limit_is_whole() -> None:
    assert (await run_one(lambda: "x" * 1000, max_chars=1000)).text == "x" * 1000


async def test_parts_of_a_result_are_kept_within_limits_of_their_own() -> None:
    parts = [ResultPart("text", "x" * 20_000), ResultPart("link", title="t" * 999, uri="u" * 9_999)]
    parts += [ResultPart("note", "half \ud83d")] * 100

    output = await run_one(
        lambda: replace(ToolOutput.of("y" * 50), parts=tuple(parts)), max_chars=10
    )
    text, link, note, *_, last = output.parts
    assert (len(text.text), text.size) == (MAX_PART_CHARS, 20_000)
    assert (len(link.title), len(link.uri)) == (MAX_TITLE_CHARS, MAX_URI_CHARS)
    assert note.text == "half \ufffd"
    assert len(output.parts) == MAX_PARTS + 1
    assert last.text == f"The first {MAX_PARTS} of 102 parts are shown."
