from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from web.harness.mcp.programs import located, ran, subject
from web.harness.mcp.spec import read_servers

BESIDE = Path(sys.executable).parent


def test_a_program_beside_this_one_is_found_though_it_is_not_on_the_path(tmp_path: Path) -> None:
    name = Path(sys.executable).name
    assert located(name, str(tmp_path)) == sys.executable
    text = json.dumps({"mcpServers": {"s": {"command": name, "args": ["x"]}}})
    (spec,) = read_servers(text, {"PATH": str(tmp_path)})
    assert (spec.command, spec.args) == (sys.executable, ("x",))


def test_what_is_on_the_path_has_a_folder_or_is_nowhere_stays_as_it_was_written(
    tmp_path: Path,
) -> None:
    name = Path(sys.executable).name
    assert located(name, str(BESIDE)) == name
    assert located(f"./{name}", str(tmp_path)) == f"./{name}"
    assert located("no-such-program-anywhere", str(tmp_path)) == "no-such-program-anywhere"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("npx -y @scope/server-files /data", "server-files"),
        ("/usr/bin/node dist/server.js", "server.js"),
        ("python3 -m mcp_server_time", "mcp_server_time"),
        ("docker run -i --rm -e KEY=abc image", ""),
        ("node --token abc server.js", ""),
        ("python -c code", ""),
        ("my-server abc", ""),
    ],
)
def test_a_runner_is_told_with_what_it_runs_and_never_with_a_value(line: str, what: str) -> None:
    command, *args = line.split()
    assert ran(command, args) == what


def test_a_command_line_is_about_the_first_program_that_does_not_only_run_another() -> None:
    assert subject(["npx", "-y", "@scope/files"]) == "files"
    assert subject(["node"]) == "node"
