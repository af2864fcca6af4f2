"""`harness-web worker`: performs the runs that servers of chats leave to Temporal."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from typing import Any

DESCRIPTION = """\
Performs the answers of chats whose servers were started with the same --backend: it asks the
models and runs the tools. Start as many as you like, on any machine that reaches Temporal, the
store and the data folder. Ctrl+C ends it: what it is at has 30 seconds to finish, and another
worker goes on with the rest."""

EPILOG = """\
examples:
  harness-web worker --backend 'temporal://127.0.0.1:7233/default?events=postgresql://me@db/chats'

A & in the address of the store is written %26. Keys of models, MCP servers (--mcp-config) and the
data folder have to be those of the servers; see 'harness-web serve --help'. It needs the package
temporalio: pip install 'harness-web[temporal]', in a checkout .venv/bin/pip install -e
'.[temporal]'."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Describes `worker`. An option that is not given leaves no trace, so that settings decide."""
    parser = commands.add_parser(
        "worker",
        help="perform what servers of chats leave to Temporal",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--backend",
        metavar="ADDRESS",
        required=True,
        help="temporal://HOST:PORT/NAMESPACE?events=STORE, as the servers have it",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="PROVIDER:NAME",
        help="a model that has to be there; may be repeated [HARNESS_WEB_MODEL]",
    )
    parser.add_argument(
        "--prices", metavar="JSON", help="what models cost, as for serve [HARNESS_WEB_PRICES]"
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where the servers keep files of chats [HARNESS_WEB_DATA_DIR]",
    )
    parser.add_argument(
        "--mcp-config",
        metavar="FILE",
        help="MCP servers that every chat has; this worker connects to them itself "
        "[HARNESS_WEB_MCP_CONFIG]",
    )
    parser.add_argument(
        "--mcp-tokens",
        metavar="FILE",
        help="sign-ins to MCP servers, as for serve [HARNESS_WEB_MCP_TOKENS]",
    )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        help="debug, info, warning (default) or error [HARNESS_WEB_LOG_LEVEL]",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Works until SIGINT or SIGTERM. Raises HarnessError when it cannot begin."""
    from web.harness.runtime.addresses import is_temporal
    from web.harness.runtime.temporal.address import need_temporal, read_address
    from web.harness.values.errors import ConfigurationError, HarnessError, first_error
    from web.settings import read_settings

    given = {name: value for name, value in vars(options).items() if name != "run"}
    address = given.pop("backend")
    if not is_temporal(address):
        raise ConfigurationError(
            "--backend: workers are for temporal:// alone.",
            hint="With SQLite and PostgreSQL the servers of chats perform the answers themselves.",
        )
    store = read_address(address).events
    need_temporal()
    # The servers' own, which the environment may name, is not that of this process.
    settings = read_settings({**given, "store": store, "backend": store})
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        asyncio.run(_work(settings, address))
    except BaseExceptionGroup as group:
        refused = group.subgroup(HarnessError)
        if refused is None:
            raise
        raise first_error(refused) from group
    return 0


async def _work(settings: Any, address: str) -> None:
    from web.commands.server import use_folders
    from web.harness.runtime.temporal.address import read_address
    from web.worker import working

    use_folders(settings)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with working(settings, address):
        read = read_address(address)
        print(
            f"Working on '{read.queue}' of Temporal at {read.target}. Ctrl+C ends it.", flush=True
        )
        await stopped.wait()
        print("Ending: what is under way has 30 seconds to finish.", file=sys.stderr, flush=True)
