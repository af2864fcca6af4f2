"""The server process: takes its port, starts the application, says where it is, ends cleanly."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import NoReturn

import uvicorn
from starlette.types import ASGIApp

from web.harness.runtime.addresses import is_temporal
from web.harness.runtime.temporal.address import need_temporal, read_address
from web.harness.sessions.opening import store_kind
from web.harness.values.errors import ConfigurationError, HarnessError
from web.paths import check_writable, prepare_data_dir
from web.settings import Settings, request_identity
from web.ui.access.identity import is_everywhere

_BACKLOG = 2048
_GRACE_SECONDS = 1
"""How long open requests and streams may take to end after Ctrl+C."""
COLLECT_AFTER = (20_000, 50, 100)
"""Objects, and smaller collections, between two collections. With Python's own numbers, 500 runs
that start at once spend a quarter of their time in collections that find nothing."""
_QUIET_SECONDS = 2.0
"""How long PostgreSQL may let a start wait before it is said what is waited for."""
_CUT_OFF = ("ASGI callable returned without completing response", "Cancel %s running task(s)")


class CannotServe(HarnessError):
    """The machine does not allow what the settings ask for."""

    code = "cannot_serve"


def serve(settings: Settings, make_app: Callable[[Settings], ASGIApp] | None = None) -> None:
    """Serves until SIGINT or SIGTERM, then exits with 0. Raises CannotServe before it listens.

    `make_app` makes another application than the usual one.
    """
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    if settings.log_level != "debug":
        # It warns of every stray line of a server, which the page shows where it belongs.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _quit)

    # Before anybody can reach it: a server that would know nobody does not listen.
    request_identity(settings)
    _check_backend(settings)
    use_folders(settings)
    if settings.chat_store != "memory":
        # What is wrong with it is said in a line, before anybody is promised an address.
        asyncio.run(_try_store(settings.chat_store))
    listener = listen(settings.host, settings.port)

    from web.app import create_app

    make_app = make_app or create_app
    config = uvicorn.Config(
        make_app(settings),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, lambda: _greet(settings, listener)).run([listener])


class _Server(uvicorn.Server):
    """Calls `when_ready` once requests are answered."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready
        logging.getLogger("uvicorn.error").addFilter(self._is_news)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # A full collection that walks all that was imported costs 130 ms, in the middle of
        # somebody's answer. What start-up made stays for good, so it is taken out of the count.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        self._when_ready()

    def _is_news(self, record: logging.LogRecord) -> bool:
        """False for what uvicorn says of requests and streams that end because the server does."""
        cancelled = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
        return not (self.should_exit and (cancelled or str(record.msg).startswith(_CUT_OFF)))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port` (0: any). Raises CannotServe with the reason."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotServe(f"{host} is no address here: {error.strerror}.") from error
    try:
        if sys.platform != "win32":
            # So that a restart need not wait for the connections of the last run. On Windows the
            # same option would let two servers share one port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _refusal(host, port, error) from error
    return listener


def _refusal(host: str, port: int, error: OSError) -> CannotServe:
    another = "Choose another with --port, or any free one with --port 0."
    match error.errno:
        case errno.EADDRINUSE:
            return CannotServe(f"Port {port} is taken by another program.", hint=another)
        case errno.EACCES:
            return CannotServe(f"You may not use port {port}.", hint=another)
        case errno.EADDRNOTAVAIL:
            return CannotServe(f"This machine has no address {host}.", hint="Try 127.0.0.1.")
        case _:
            return CannotServe(f"Cannot listen at {host} port {port}: {error.strerror}.")


def _check_backend(settings: Settings) -> None:
    """Raises ConfigurationError for what is asked of a backend that does not do it."""
    address = settings.run_backend
    if address is not None and is_temporal(address):
        need_temporal()
    if settings.resume != "ask":
        return
    if address is None:
        raise ConfigurationError(
            "--resume ask: answers are not written down here, so one that is cut off cannot go on.",
            hint="Leave it out, or say --store or --backend with a database.",
        )
    if is_temporal(address):
        raise ConfigurationError(
            "--resume ask: Temporal goes on with answers by itself, wherever a worker is.",
            hint="Leave it out, or have answers written down in SQLite or PostgreSQL.",
        )


async def _try_store(address: str) -> None:
    """Raises ConfigurationError or StoreError where chats cannot be kept there."""
    from web.harness.sessions.opening import open_stores

    told = None
    if store_kind(address) == "postgresql":
        # It may be just starting, so it is asked again for some seconds.
        tell = partial(print, "harness-web: waiting for PostgreSQL.", file=sys.stderr, flush=True)
        told = asyncio.get_running_loop().call_later(_QUIET_SECONDS, tell)
    try:
        stores = await open_stores(address, now=time.time)
    finally:
        if told is not None:
            told.cancel()
    await stores.aclose()


def use_folders(settings: Settings) -> None:
    """Raises CannotServe for a folder that cannot be written to."""
    data, memory = settings.data_dir, settings.memory_dir
    try:
        prepare_data_dir(data)
    except OSError as error:
        raise CannotServe(
            f"The data folder {data} cannot be used: {error.strerror}.",
            hint="Choose another with --data-dir.",
        ) from error
    if memory is not None:
        try:
            # As the memory itself would make it: what is remembered is the owner's alone.
            memory.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_writable(memory)
        except OSError as error:
            raise CannotServe(
                f"The memory folder {memory} cannot be used: {error.strerror}.",
                hint="Choose another with HARNESS_WEB_MEMORY_DIR.",
            ) from error


def local_address(host: str, port: int) -> str:
    """Where a browser of this machine finds what listens at `host`.

    Of a server at every address (`0.0.0.0`, `::`) it is that of loopback: the wildcard itself is no
    address that one can open.
    """
    if is_everywhere(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _greet(settings: Settings, listener: socket.socket) -> None:
    address = local_address(settings.host, listener.getsockname()[1])
    kept = {"memory": "in memory", "sqlite": "in SQLite", "postgresql": "in PostgreSQL"}
    where = kept[store_kind(settings.chat_store) or "memory"]
    if is_everywhere(settings.host):
        where += ", every address of this machine is served"
    if settings.run_backend is not None and is_temporal(settings.run_backend):
        temporal = read_address(settings.run_backend)
        where += f", answers go through Temporal at {temporal.target}/{temporal.namespace}"
    print(
        f"harness-web is at {address}  (model {settings.models[0]}, chats are kept {where})",
        flush=True,
    )
    is_ours = settings.identity is None
    if is_ours and settings.open_browser and settings.has_screen and sys.stdout.isatty():
        # Some browsers keep the caller waiting until their window is closed.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _quit(signal_number: int, frame: FrameType | None) -> NoReturn:
    """Ends the process. While uvicorn serves it has its own handler; it raises the signal again
    when it is done, and that comes here."""
    sys.exit(0)
