"""`harness-web demo-server`: an MCP server to try the chat with, over stdin and stdout."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, NoReturn

DESCRIPTION = """\
Serves MCP over stdin and stdout: a few tools, resources and a prompt that show
what MCP can do. An MCP client starts it; it ends when its stdin is closed."""

EPILOG = """\
in the configuration of an MCP client:
  {"mcpServers": {"demo": {"command": "harness-web", "args": ["demo-server"]}}}

It reads and changes nothing outside of itself: no file, no network."""

HINT = (
    "harness-web: this is an MCP server and waits for an MCP client to speak on stdin. "
    "See 'harness-web demo-server --help'; Ctrl+C ends it."
)


def add_parser(commands: argparse._SubParsersAction[Any], serve: Callable[[], None]) -> None:
    """Describes `demo-server`. `serve` serves until stdin is closed; it is called only then."""
    parser = commands.add_parser(
        "demo-server",
        help="serve a small MCP server over stdin and stdout, to try MCP with",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=partial(run, serve))


def run(serve: Callable[[], None], options: argparse.Namespace) -> int:
    """Serves until stdin is closed."""
    signal.signal(signal.SIGINT, _quit)
    if sys.stdin.isatty():
        print(HINT, file=sys.stderr)
    serve()
    return 0


def _quit(signal_number: int, frame: FrameType | None) -> NoReturn:
    """Ends the process at once. A thread that waits for a line on stdin would keep it alive, and
    there is nothing to put away."""
    os._exit(130)
