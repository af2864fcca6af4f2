"""`harness-web demo crash`: its options, and the server that it starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

DESCRIPTION = """\
Starts a server, has it write a long answer with three tools, kills it in the
middle (SIGKILL), starts another one and shows that the answer goes on: what was
kept, what was resumed, and what a person has to decide. It needs no key. The
exit code is 0 where nothing was lost, doubled or repeated, else 1."""

EPILOG = """\
examples:
  harness-web demo crash
  harness-web demo crash --open --stay
  harness-web demo crash --store postgresql://USER@HOST/DATABASE

The database should be one that no other server uses: that one would go on with the answer."""


def add_parser(
    commands: argparse._SubParsersAction[Any],
    show: Callable[[argparse.Namespace], int],
    serve: Callable[[], None],
) -> None:
    """Describes `demo`. `show` runs the demo; `serve` is the server, until its input ends."""
    demo = commands.add_parser(
        "demo", help="kill a server in the middle of an answer, and see it go on"
    )
    demos = demo.add_subparsers(title="demos", metavar="DEMO", required=True)
    crash = demos.add_parser(
        "crash",
        help="kill a server in the middle of an answer, and see it go on",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    crash.add_argument(
        "--store",
        default="",
        help="where the chat is kept: sqlite:///PATH or postgresql://USER@HOST/DATABASE; by "
        "default a file in a folder that is deleted at the end",
    )
    crash.add_argument(
        "--port", type=_port, default=0, help="port of the server; any that is free by default"
    )
    crash.add_argument(
        "--open", action="store_true", dest="open_browser", help="watch it in a browser window"
    )
    crash.add_argument(
        "--stay",
        action="store_true",
        help="leave the server running at the end, until Ctrl+C: the page has a button that kills "
        "it, as often as you like",
    )
    crash.add_argument(
        "--kill",
        action="append",
        choices=("tools", "text"),
        help="where to kill it: while tools run, or in the middle of the last text; may be "
        "repeated, by default both",
    )
    crash.add_argument(
        "--answer",
        choices=("ran", "again", "give-up"),
        default="",
        help="what to say of the tool of which nobody knows if it ran; by default you are asked, "
        "and without a terminal it is 'ran'",
    )
    crash.add_argument("--fast", action="store_true", help="write and wait less: not to be watched")
    # For the demo itself, which starts its server with it; people are not told of it.
    crash.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)

    def run(options: argparse.Namespace) -> int:
        if not options.serve:
            return show(options)
        serve()
        return 0

    crash.set_defaults(run=run)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port, a number from 0 to 65535")
    return int(text)
