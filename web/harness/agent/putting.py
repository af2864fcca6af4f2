"""Puts a question to a function that answers it, whether it is a coroutine function or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from web.harness.tools.threads import run_in_thread


async def put(function: Callable[[Any], Any], question: Any) -> Any:
    """What the function gives. A plain one may wait for a person, so it runs in a thread."""
    forms = (function, type(function).__call__)
    if any(inspect.iscoroutinefunction(form) for form in forms):
        return await function(question)
    given = await run_in_thread(lambda: function(question))
    return await given if inspect.isawaitable(given) else given
