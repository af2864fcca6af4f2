"""`harness-web serve`: its options. What they start is in `server.py`, imported only then."""

from __future__ import annotations

import argparse
import sys
from typing import Any

DESCRIPTION = """\
Serves the chat at an address of this machine and prints that address.
Ctrl+C stops it."""

EPILOG = """\
examples:
  harness-web serve
  harness-web serve --model openai:gpt-5.4 --model demo:demo
  harness-web serve --port 0 --data-dir ~/chats --no-open
  harness-web serve --mcp-config servers.json

keys and addresses of models (environment only):
  OPENAI_API_KEY, OPENAI_BASE_URL         any server that speaks Chat Completions
  ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
Without --model, a vendor whose key is set is the default, and demo:demo is offered beside it.
demo:demo needs no key: it is scripted and shows what the product can do. demo:small is the same
with a context of 8,192 tokens, so that a conversation gets too long for it soon.

MCP servers for every chat, as other programs have them (--mcp-config):
  {"mcpServers": {"time": {"command": "mcp-server-time", "env": {"TOKEN": "${TOKEN}"}},
                  "wiki": {"url": "https://example.com/mcp", "headers": {}, "disabled": false}}}

Every option can also be set by the variable in brackets; the option wins."""


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Describes `serve`. An option that is not given leaves no trace, so that settings decide."""
    parser = commands.add_parser(
        "serve",
        help="serve the chat at an address of this machine",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--host",
        help="address to listen at: 127.0.0.1 (default), ::1 or localhost; another one only with "
        "--identity [HARNESS_WEB_HOST]",
    )
    parser.add_argument(
        "--port", help="port; 8420 by default, 0 for any that is free [HARNESS_WEB_PORT]"
    )
    parser.add_argument(
        "--identity",
        metavar="WAY",
        help="how it is known who asks: header:NAME[,TENANT] as a trusted proxy sets them, or "
        "token:FILE with a line TOKEN USER [TENANT] each; without, everybody is the person at this "
        "machine [HARNESS_WEB_IDENTITY]",
    )
    parser.add_argument(
        "--trusted-proxy",
        action="append",
        metavar="ADDRESS",
        help="address or network of a proxy whose headers say who asks; may be repeated "
        "[HARNESS_WEB_TRUSTED_PROXY, separated by commas]",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name under which browsers reach this server, such as chat.example.com; may be "
        "repeated; only with --identity [HARNESS_WEB_ALLOW_HOST, separated by commas]",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="PROVIDER:NAME",
        help="a model to offer: openai:NAME, anthropic:NAME, demo:demo or demo:small; may be "
        "repeated, the first is the default [HARNESS_WEB_MODEL, separated by commas]",
    )
    parser.add_argument(
        "--prices",
        metavar="JSON",
        help="what models cost, in dollars per million tokens in and out: "
        """'{"openai:NAME": [3, 15]}'; without, cost is not known [HARNESS_WEB_PRICES]""",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where files of chats are kept; made if missing; by default the checkout, or your "
        "data directory when installed [HARNESS_WEB_DATA_DIR]",
    )
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="where chats are kept: memory (default; a restart ends them), sqlite:///PATH (a file; "
        "sqlite:////PATH from the root) or postgresql://USER@HOST/DATABASE [HARNESS_WEB_STORE]",
    )
    parser.add_argument(
        "--backend",
        metavar="BACKEND",
        help="where answers under way are written down, so that they go on after a crash: "
        "sqlite:///PATH, postgresql://..., temporal://HOST:PORT/NAMESPACE?events=STORE or none; by "
        "default the store, where it is a database. It is the store too [HARNESS_WEB_BACKEND]",
    )
    parser.add_argument(
        "--resume",
        metavar="WAY",
        help="answers that were cut off go on by themselves (auto, default), or when you say so "
        "in the page (ask; not with Temporal) [HARNESS_WEB_RESUME]",
    )
    parser.add_argument(
        "--mcp-config",
        metavar="FILE",
        help="MCP servers that every chat has; a JSON file as below [HARNESS_WEB_MCP_CONFIG]",
    )
    parser.add_argument(
        "--mcp-tokens",
        metavar="FILE",
        help="where sign-ins to MCP servers are kept for the next start: a file that only you can "
        "read, made if missing; by default they end with the server [HARNESS_WEB_MCP_TOKENS]",
    )
    parser.add_argument(
        "--mcp-client-metadata-url",
        metavar="URL",
        help="https address at which you publish /oauth/client-metadata.json of this server, for "
        "sign-in without registration [HARNESS_WEB_MCP_CLIENT_METADATA_URL]",
    )
    parser.add_argument(
        "--no-open",
        action="store_false",
        dest="open_browser",
        help="do not open a browser window [HARNESS_WEB_OPEN=0]",
    )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        help="debug, info, warning (default) or error [HARNESS_WEB_LOG_LEVEL]",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serves until it is stopped. Raises HarnessError when it cannot start."""
    from web.commands.server import serve
    from web.settings import read_settings, unknown_variables

    given = {name: value for name, value in vars(options).items() if name != "run"}
    settings = read_settings(given)
    for name in unknown_variables():
        print(
            f"harness-web: {name} is not a setting and is ignored. See 'harness-web serve --help'.",
            file=sys.stderr,
        )
    serve(settings)
    return 0
