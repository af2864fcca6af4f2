"""`harness-web` as a person starts it: real processes, real exit codes."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.environment import CHECKOUT, environment
from tests.support.mcp_wire import words_in
from tests.support.processes import is_alive, run_code
from tests.support.serving import PROGRAM, serving


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=CHECKOUT,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    """The single line of a refusal."""
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("harness-web: ")
    return lines[0]


def long(arguments: list[str], words: list[str]) -> Any:
    """One of a kind: each run has another of the same kind."""
    return pytest.param(arguments, words, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--frobnicate"], ["--frobnicate", "--help"]),
        (["serve", "--frobnicate"], ["--frobnicate", "'harness-web serve --help'"]),
        long(["serve", "--por", "1"], ["--por"]),
        (["frobnicate"], ["frobnicate", "serve"]),
        long(["demo", "frobnicate"], ["'frobnicate'", "(choose from 'crash')"]),
        (["serve", "--port"], ["--port", "argument"]),
        long(["serve", "--port", "http"], ["--port", "'http'", "0 to 65535"]),
        long(["serve", "--port", "65536"], ["--port", "'65536'", "0 to 65535"]),
        long(["serve", "--port", "-1"], ["--port", "'-1'"]),
        (["serve", "--model", "frob:nicate"], ["--model", "'frob'", "openai, anthropic, demo"]),
        long(["serve", "--model", "demo"], ["--model", "'demo'", "PROVIDER:NAME"]),
        long(["serve", "--model", "demo:other"], ["--model", "'demo:other'", "demo:demo"]),
        long(["serve", "--model", ""], ["--model", "PROVIDER:NAME"]),
        long(["serve", "--data-dir", ""], ["--data-dir", "no folder"]),
        long(["serve", "--host", "0.0.0.0"], ["--host", "'0.0.0.0'", "127.0.0.1"]),
        long(["serve", "--host", "192.0.2.1"], ["--host", "--identity"]),
        long(["serve", "--host", "example.org"], ["--host", "'example.org'"]),
        long(["serve", "--log-level", "loud"], ["--log-level", "'loud'", "warning"]),
        long(["serve", "--resume", "ask"], ["--resume ask", "not written down", "--store"]),
        long(["serve", "--resume", "ask", "--backend", "none"], ["--resume ask", "--backend"]),
    ],
)
def test_a_wrong_request_is_one_clear_line(arguments: list[str], words: list[str]) -> None:
    done = run(*arguments)
    line = only_line(done)
    assert done.returncode == 2
    assert [word for word in words if word not in line] == []


def test_a_wrong_variable_is_named_in_one_line() -> None:
    done = run("serve", HARNESS_WEB_PORT="many")
    assert done.returncode == 2
    assert "HARNESS_WEB_PORT" in only_line(done)


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = run("serve", "--port", port, "--data-dir", str(tmp_path))
    line = only_line(done)
    assert done.returncode == 1
    assert f"Port {port} is taken" in line
    assert "--port" in line


@pytest.mark.parametrize(
    ("store", "words", "code"),
    [
        pytest.param("mysql://me:sesame@there", "--store", 2, marks=pytest.mark.full),
        ("sqlite:///{folder}/file/chats.sqlite3", "cannot be opened", 1),
        pytest.param("sqlite:///{folder}/file.sqlite3", "damaged", 1, marks=pytest.mark.full),
        pytest.param("sqlite:///{folder}/newer.sqlite3", "schema 99", 1, marks=pytest.mark.full),
    ],
)
def test_a_store_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, store: str, words: str, code: int
) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "file.sqlite3").write_text("no database" * 500)
    with closing(sqlite3.connect(tmp_path / "newer.sqlite3")) as newer, newer:
        newer.execute("CREATE TABLE harness_schema (version INTEGER, applied_at REAL)")
        newer.execute("INSERT INTO harness_schema VALUES (99, 1.0)")
    address = store.format(folder=tmp_path)
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), "--store", address)
    assert words in only_line(done)
    assert done.returncode == code
    assert "sesame" not in done.stderr


@pytest.mark.full
def test_while_postgresql_is_waited_for_a_line_says_so(tmp_path: Path) -> None:
    address = "postgresql://me:sesame@127.0.0.1:1/chats"
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path), "--store", address)
    waiting, refused = done.stderr.splitlines()
    assert waiting == "harness-web: waiting for PostgreSQL."
    assert "cannot be reached" in refused
    assert done.returncode == 1
    assert "sesame" not in done.stderr


NO_TEMPORAL = "temporal://127.0.0.1:1/default?events=sqlite:///{folder}/runs.db"


@pytest.mark.full
def test_what_temporal_does_not_do_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    address = NO_TEMPORAL.format(folder=tmp_path)
    done = run("serve", "--port", "0", "--backend", address, "--resume", "ask")
    assert "--resume ask: Temporal goes on with answers by itself" in only_line(done)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_without_its_package_temporal_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    options = ["serve", "--port", "0", "--backend", NO_TEMPORAL.format(folder=tmp_path)]
    # Python's own way to say that a module is not there.
    script = (
        "import sys; sys.modules['temporalio'] = None; from web.__main__ import main; "
        f"sys.exit(main({options!r}))"
    )
    done = run_code(script)
    assert "The package for Temporal is not installed." in only_line(done)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_server_without_its_temporal_starts_and_says_so(tmp_path: Path) -> None:
    options = ("--backend", NO_TEMPORAL.format(folder=tmp_path), "--data-dir", str(tmp_path))
    with serving(*options) as server:
        assert "answers go through Temporal at 127.0.0.1:1/default" in server.greeting
        within(20, lambda: "Runs wait: Temporal cannot be reached" in server.stderr())


def test_a_variable_that_is_no_setting_is_told_and_serves_all_the_same(tmp_path: Path) -> None:
    with serving("--data-dir", str(tmp_path), variables={"HARNESS_WEB_FOO": "1"}) as server:
        assert httpx.get(f"{server.address}/", follow_redirects=True, timeout=30).status_code == 200
        server.process.terminate()
        assert server.process.wait(timeout=10) == 0
        (line,) = server.stderr().splitlines()
    assert line.startswith("harness-web: HARNESS_WEB_FOO is not a setting")


@pytest.mark.full
@pytest.mark.parametrize("variable", ["MEMORY_DIR", "MCP_TOKENS"])
def test_what_cannot_be_written_elsewhere_is_one_clear_line(tmp_path: Path, variable: str) -> None:
    given = {f"HARNESS_WEB_{variable}": "/proc/nothing-can-be-made-here"}
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path), **given)
    assert "/proc/nothing-can-be-made-here cannot be " in only_line(done)
    assert done.returncode in (1, 2)


@pytest.mark.parametrize(
    "below",
    ["chats/mine", *(pytest.param(below, marks=pytest.mark.full) for below in ("", "chats"))],
)
def test_a_data_folder_that_cannot_be_used_is_one_clear_line(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / below
    done = run("serve", "--port", "0", "--data-dir", str(folder))
    line = only_line(done)
    assert done.returncode == 1
    assert str(folder) in line
    assert "--data-dir" in line


def test_servers_that_cannot_be_read_are_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": []}')
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path), "--mcp-config", str(file))
    line = only_line(done)
    assert done.returncode == 2
    assert str(file) in line


@pytest.mark.full
def test_a_server_of_every_chat_delays_nothing_and_ends_with_the_program(tmp_path: Path) -> None:
    # It never answers: the address is printed and pages are there all the same.
    args = [str(CHECKOUT / "tests/support/silent_server.py"), str(tmp_path / "pids")]
    config = {"mcpServers": {"silent": {"command": sys.executable, "args": args}}}
    (tmp_path / "servers.json").write_text(json.dumps(config))
    options = ("--data-dir", str(tmp_path), "--mcp-config", str(tmp_path / "servers.json"))
    with serving(*options) as server:
        assert "silent" in httpx.get(server.address, timeout=30).text
        within(20, lambda: words_in(tmp_path / "pids"))
        pids = [int(pid) for pid in words_in(tmp_path / "pids").split()]
    within(20, lambda: not any(is_alive(pid) for pid in pids))


def within(seconds: float, condition: Callable[[], object]) -> None:
    """Waits for what other processes do."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_help_names_every_option_and_its_variable() -> None:
    done = run("serve", "--help")
    assert done.returncode == 0
    for option in ("host", "port", "model", "data-dir", "mcp-config", "mcp-tokens", "log-level"):
        assert f"--{option}" in done.stdout
        assert f"HARNESS_WEB_{option.upper().replace('-', '_')}" in done.stdout
    for name in ("--no-open", "HARNESS_WEB_OPEN", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL"):
        assert name in done.stdout


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from web.__main__ import main\n"
        "try: main(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "print('loaded:', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = run_code(script)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("loaded:")[2].split())
    assert loaded & {"starlette", "uvicorn", "pydantic", "jinja2", "mcp", "httpx"} == set()


def test_no_command_shows_what_there_is() -> None:
    done = run()
    assert done.returncode == 2
    assert "serve" in done.stdout
    assert done.stderr == ""


def test_version_is_the_one_of_the_package() -> None:
    from web import __version__

    assert run("--version").stdout == f"harness-web {__version__}\n"


def test_the_first_page_is_there_when_the_address_is_printed(tmp_path: Path) -> None:
    with serving("--data-dir", str(tmp_path / "new" / "folder")) as server:
        assert server.greeting == (
            f"harness-web is at {server.address}  (model demo:demo, chats are kept in memory)\n"
        )
        answer = httpx.get(f"{server.address}/", follow_redirects=True, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert (tmp_path / "new" / "folder" / "generated").is_dir()


@pytest.mark.full
def test_an_option_wins_over_its_variable(tmp_path: Path) -> None:
    variables = {
        "HARNESS_WEB_PORT": "1",
        "HARNESS_WEB_MODEL": "openai:from-environment",
        "HARNESS_WEB_DATA_DIR": str(tmp_path / "environment"),
        "ANTHROPIC_API_KEY": "a-key",
    }
    arguments = ("--model", "anthropic:from-option", "--data-dir", str(tmp_path / "option"))
    with serving(*arguments, variables=variables) as server:
        assert "(model anthropic:from-option," in server.greeting
    assert (tmp_path / "option").is_dir()
    assert not (tmp_path / "environment").exists()


@pytest.mark.full
def test_ipv6_loopback_is_served_at_an_address_a_browser_takes(tmp_path: Path) -> None:
    with serving("--host", "::1", "--data-dir", str(tmp_path)) as server:
        assert server.address.startswith("http://[::1]:")
        assert httpx.get(f"{server.address}/", follow_redirects=True, timeout=30).status_code == 200


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
def test_stopping_is_quick_and_quiet_while_requests_are_open(
    tmp_path: Path, number: signal.Signals
) -> None:
    with (
        serving("--data-dir", str(tmp_path)) as server,
        httpx.Client(base_url=server.address, timeout=10) as client,
    ):
        # A run that waits for a person keeps its events open without end.
        chat = client.post("/api/chats", json={}).raise_for_status().json()
        message = {"text": '/write_file {"path": "note.txt", "content": "hello"}'}
        sent = client.post(f"/api/chats/{chat['id']}/messages", json=message).raise_for_status()
        with client.stream("GET", f"/api/runs/{sent.json()['run_id']}/events") as events:
            assert any("approval_required" in line for line in events.iter_lines())
            host, port = server.address.removeprefix("http://").split(":")
            # And this request never gets the body that it promises.
            with socket.create_connection((host, int(port))) as unfinished:
                unfinished.sendall(
                    f"POST /api/chats HTTP/1.1\r\nHost: {host}:{port}\r\n"
                    "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n".encode()
                )
                asked = time.monotonic()
                server.process.send_signal(number)
                code = server.process.wait(timeout=10)
                took = time.monotonic() - asked
        assert (code, server.stderr()) == (0, "")
    assert took < 6
