"""Tools from Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from web.harness.tools.outputs import as_output
from web.harness.tools.signatures import Signature, read_signature, shared_signature
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import (
    Handler,
    PermissionLevel,
    Preview,
    ReplayPolicy,
    Tool,
    ToolContext,
    ToolOutput,
)
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject


def function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    permission: PermissionLevel = PermissionLevel.ASK,
    timeout_seconds: float | None = None,
    replay: ReplayPolicy = "manual",
    preview: Preview | None = None,
    version: str = "",
    share_signature: bool = False,
) -> Tool:
    """A tool that calls `function`, with name, description and schema read from it.

    A coroutine function runs in the event loop, any other in a thread, which is left behind when
    the call is cancelled. It may return text, None, a ToolOutput, or what has a JSON form. A
    parameter annotated `ToolContext` gets the context of the call and is not shown to the model.
    `share_signature` suits a closure that is made for every chat: see `shared_signature`.
    Raises ConfigurationError when a model could not call it.
    """
    if name is None:
        name = str(getattr(function, "__name__", type(function).__name__))
    forms = (function, type(function).__call__)
    if any(inspect.isgeneratorfunction(form) or inspect.isasyncgenfunction(form) for form in forms):
        raise ConfigurationError(f"The tool '{name}' is a generator; a tool returns one result.")
    read = shared_signature if share_signature else read_signature
    signature = read(function, name)
    is_async = any(inspect.iscoroutinefunction(form) for form in forms)
    return Tool(
        name=name,
        description=signature.description if description is None else description,
        input_schema=signature.schema,
        handler=_handler(function, signature, is_async),
        permission=permission,
        timeout_seconds=timeout_seconds,
        replay=replay,
        preview=preview,
        validate=signature.validate,
        version=version,
    )


def _handler(function: Callable[..., Any], signature: Signature, is_async: bool) -> Handler:
    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        positional, named = signature.bind(arguments, context)
        if is_async:
            result = await function(*positional, **named)
        else:
            result = await run_in_thread(lambda: function(*positional, **named))
            if inspect.isawaitable(result):
                result = await result
        return as_output(result)

    return handle
