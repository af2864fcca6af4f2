"""The tools an agent has: registered, offered to models, validated, run."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, overload

from web.harness.tools.clock import CallClock
from web.harness.tools.functions import function_tool
from web.harness.tools.outputs import bounded
from web.harness.tools.permissions import Permissions
from web.harness.tools.tool import (
    PermissionLevel,
    Preview,
    ReplayPolicy,
    Tool,
    ToolContext,
    ToolOutput,
)
from web.harness.tools.words import clean, describe, did_you_mean, shorten, shown
from web.harness.values.errors import ConfigurationError, HarnessError, ToolError
from web.harness.values.messages import JsonObject
from web.harness.values.model import ToolSpec

F = TypeVar("F", bound=Callable[..., Any])

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class ToolRegistry:
    """Tools by name, in the order they were added."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    @overload
    def register(self, function: F, /) -> F: ...

    @overload
    def register(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        permission: PermissionLevel = PermissionLevel.ASK,
        timeout_seconds: float | None = None,
        replay: ReplayPolicy = "manual",
        preview: Preview | None = None,
        version: str = "",
    ) -> Callable[[F], F]: ...

    def register(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Adds a function as a tool, as `@register` or `@register(name=..., ...)`.

        The options are those of `function_tool`. The function is given back unchanged. Raises
        ConfigurationError as `add` and `function_tool` do.
        """

        def decorate(decorated: F) -> F:
            self.add(function_tool(decorated, **options))
            return decorated

        return decorate if function is None else decorate(function)

    def add(self, tool: Tool) -> None:
        """Raises ConfigurationError for a name that models do not take or that is in use."""
        if not _LEGAL_NAME.fullmatch(tool.name):
            raise ConfigurationError(
                f"'{shorten(clean(tool.name), 80)}' is no name for a tool.",
                hint="Use 1 to 64 letters a-z, A-Z, digits, _ and -.",
            )
        if tool.name in self._tools:
            raise ConfigurationError(
                f"There is a tool '{tool.name}' already.", hint="Give it another name."
            )
        self._tools[tool.name] = tool

    def remove(self, name: str) -> None:
        """Calls under way go on. A name that is not there is fine."""
        self._tools.pop(name, None)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def specs(self, permissions: Permissions | None = None) -> tuple[ToolSpec, ...]:
        """The tools as a model is shown them; with `permissions`, without those it denies."""
        return tuple(
            ToolSpec(tool.name, tool.description, tool.input_schema)
            for tool in self._tools.values()
            if permissions is None or permissions.level(tool) is not PermissionLevel.DENY
        )

    def validate(self, name: str, arguments: object) -> JsonObject:
        """The arguments that the tool's handler and preview take.

        Raises ToolError, and nothing else, whose text tells the model what to send instead. A
        tool without a validator of its own gets any JSON object as it is.
        """
        tool = self._known(name)
        if not isinstance(arguments, dict):
            raise ToolError(
                f"The arguments of '{name}' must be one JSON object, not {shown(arguments)}."
            )
        if tool.validate is None:
            return arguments
        try:
            return tool.validate(arguments)
        except ToolError:
            raise
        except Exception as error:
            words = describe(error)
            if not isinstance(error, HarnessError):
                words = f"The arguments of '{name}' could not be checked. {words}"
            raise ToolError(words) from error

    async def run(
        self,
        name: str,
        arguments: JsonObject,
        context: ToolContext,
        default_timeout: float | None,
        max_chars: int | None = None,
    ) -> ToolOutput:
        """Validates and runs one call; permissions are the caller's concern.

        Whatever goes wrong in the tool is a result with `is_error` set: an exception with its
        type and message (`SystemExit` too: a tool ends no program), a call that took longer than
        the tool's own timeout or else `default_timeout` (seconds, None or infinity for no limit;
        the time of a person who is asked does not count). A result of more than `max_chars`
        characters is cut. Cancelling the call cancels the tool; CancelledError and
        KeyboardInterrupt are passed on.
        """
        try:
            tool = self._known(name)
            valid = self.validate(name, arguments)
            limit = default_timeout if tool.timeout_seconds is None else tool.timeout_seconds
            output = await _within(None if limit == math.inf else limit, tool, valid, context)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            output = ToolOutput.of(describe(error), is_error=True)
        return bounded(output, max_chars)

    def _known(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            near = did_you_mean(name, self._tools)
            names = shorten(", ".join(self._tools), 1000) or "none"
            raise ToolError(f"There is no tool {shown(name)}.{near} The tools are: {names}.")
        return tool


async def _within(
    limit: float | None, tool: Tool, arguments: JsonObject, context: ToolContext
) -> ToolOutput:
    """Runs the handler for at most `limit` seconds; raises ToolError that says the limit.

    The time that a person takes to answer does not count.
    """
    try:
        async with asyncio.timeout(limit) as scope:
            clock = CallClock(scope, context.ask)
            return await tool.handler(arguments, replace(context, ask=clock.ask))
    except Exception:
        # A TimeoutError of the tool's own, from a socket say, is an ordinary failure; whatever
        # it raises because it is stopped at the limit is not.
        if not scope.expired():
            raise
        raise ToolError(
            f"'{tool.name}' was stopped: it took longer than its limit of {limit:g} seconds."
        ) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody stopped the run; something that the tool waited for was cancelled.
        raise ToolError(f"'{tool.name}' was cancelled from inside.") from None
