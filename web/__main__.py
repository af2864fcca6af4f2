"""`harness-web`: reads the command line, runs one command, turns its errors into one line.

Exit codes: 0 done, 1 the surroundings do not allow it, 2 it was asked for wrongly, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from web import __version__
from web.commands import demo, demo_server, files, serve, worker
from web.harness.values.errors import ConfigurationError, HarnessError

PROGRAM = "harness-web"


class _Parser(argparse.ArgumentParser):
    """An argument parser that answers a mistake with one line instead of its whole usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what is not known here, so that a command points to its own help."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: {message}. See '{self.prog} --help'.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that `arguments` (default: those of the process) name."""
    parser = _Parser(
        prog=PROGRAM, description="A browser chat whose agent harness runs on the server."
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    serve.add_parser(commands)
    worker.add_parser(commands)
    demo_server.add_parser(commands, _serve_demo)
    demo.add_parser(commands, _show_crash, _serve_crash)
    files.add_parser(commands)

    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return 2
    try:
        return int(options.run(options))
    except HarnessError as error:
        print(f"{PROGRAM}: {' '.join(f'{error.message} {error.hint}'.split())}", file=sys.stderr)
        return 2 if isinstance(error, ConfigurationError) else 1
    except KeyboardInterrupt:
        return 130


def _serve_demo() -> None:
    """Commands and demos are blind to each other; this module knows both."""
    from web.demos.mcp_server import serve

    serve()


def _show_crash(options: argparse.Namespace) -> int:
    from web.demos.crash.show import MOMENTS, Options, show

    return show(
        Options(
            store=options.store,
            port=options.port,
            open_browser=options.open_browser,
            stay=options.stay,
            fast=options.fast,
            moments=[each for each in MOMENTS if each in (options.kill or MOMENTS)],
            answer=options.answer,
        )
    )


def _serve_crash() -> None:
    from web.commands.server import serve
    from web.demos.crash.asked import read_asked
    from web.demos.crash.served import make_app, settings_for

    asked = read_asked()
    serve(settings_for(asked), partial(make_app, asked))


if __name__ == "__main__":
    sys.exit(main())
