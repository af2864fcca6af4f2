"""Blocking functions beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def run_in_thread(
    function: Callable[[], T],
    *,
    finish: bool = False,
    cancelled: Callable[[], None] | None = None,
) -> T:
    """The result of `function`, run in a thread of its own with the caller's context variables.

    A thread cannot be stopped. When the caller is cancelled, the thread is left behind and its
    result dropped; with `finish`, cancellation waits for it instead, which suits short work that
    must not go on after a person pressed Stop. `cancelled` is called when the caller is, so that
    the function can be told to end itself sooner. Every call has its own daemon thread, so that one
    which never returns neither takes a place in a pool nor keeps the process from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(setter: Callable[[Any], None], value: object) -> None:
        if not future.done():
            setter(value)

    def work() -> None:
        setter: Callable[[Any], None] = future.set_result
        value: object
        try:
            value = context.run(function)
        except (StopIteration, GeneratorExit) as error:
            # A future refuses the one, since it would end a generator that awaits it, and the
            # other would close the whole task that does.
            words = f"{type(error).__name__}: {error}"
            setter, value = future.set_exception, RuntimeError(words)
        except BaseException as error:
            setter, value = future.set_exception, error
        # The loop may have ended before an abandoned function did.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, setter, value)

    threading.Thread(target=work, name="harness-tool", daemon=True).start()
    try:
        return await (asyncio.shield(future) if finish else future)
    except asyncio.CancelledError:
        if cancelled is not None:
            cancelled()
        if finish:
            await _settled(future)
        raise


async def _settled(future: asyncio.Future[Any]) -> None:
    """Returns when the future is done, however often the caller is cancelled meanwhile."""
    # A scope of anyio that is cancelled cancels again at each turn of the event loop, which would
    # then do nothing else, and hold up the very thread that it waits for.
    with anyio.CancelScope(shield=True):
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({future})
    # An exception that nobody reads would be logged as forgotten.
    future.exception()
