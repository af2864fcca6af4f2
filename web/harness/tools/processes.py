"""Programs started as leaders of their own process group, so that all they start ends with them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio


async def started(
    protocol: asyncio.SubprocessProtocol, command: Sequence[str], **options: Any
) -> asyncio.SubprocessTransport:
    """The running program; `options` are those of `loop.subprocess_exec`.

    When the caller is cancelled while it is being started, it is waited for and its group killed:
    asyncio itself would kill the leader alone and leave what that has started. Raises OSError or
    ValueError where it cannot be started.
    """
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: protocol, *command, start_new_session=True, **options
        )
    )
    cancelled: asyncio.CancelledError | None = None
    # The shield holds off a cancel scope, which would ask again at each step.
    with anyio.CancelScope(shield=True):
        while not starting.done():
            try:
                await asyncio.wait({starting})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return starting.result()[0]
    if starting.exception() is None:
        transport = starting.result()[0]
        with suppress(ProcessLookupError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        transport.close()
    raise cancelled
