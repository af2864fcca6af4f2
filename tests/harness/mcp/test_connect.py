"""A server is reached, or one line says why not; what it does wrong costs only itself."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.support.mcp_wire import RAW, SECONDS, children, raw, sdk, until
from web.harness.mcp.connections import Connections
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.status import Status
from web.harness.mcp.stdio import inherited
from web.harness.values.errors import ConfigurationError, NotFound, ToolError

pytestmark = pytest.mark.anyio


async def settled(connections: Connections, spec: ServerSpec) -> Status:
    connection = connections.connect(spec)
    return await until(connection, lambda status: status.state != "connecting")


def names(status: Status) -> list[str]:
    return [tool.name for tool in status.tools]


async def test_a_server_says_who_it_is_and_what_it_offers(connections: Connections) -> None:
    status = await settled(connections, raw())
    assert (status.state, status.cause) == ("ready", "")
    assert (status.title, status.version, status.protocol) == ("Raw server", "1.2", "2025-11-25")
    assert status.instructions == "Be brief."
    assert names(status)[:2] == ["echo", "silent"]


async def test_a_program_made_with_the_sdk_speaks_the_newer_protocol(
    connections: Connections,
) -> None:
    status = await settled(connections, sdk())
    assert (status.state, status.protocol, status.title) == ("ready", "2026-07-28", "SDK server")
    assert "point" in names(status)


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (ServerSpec("s", "stdio", command="/no/such/program"), "'/no/such/program' was not found"),
        (
            ServerSpec("s", "stdio", command="sh", cwd="/no/such"),
            "folder '/no/such' does not exist",
        ),
        (ServerSpec("s", "stdio", command=str(RAW.parent)), "may not be run: no permission"),
        (ServerSpec("s", "stdio", command="a\0b"), "holds a character"),
        (raw("version", "2099-01-01"), "protocol version from the server: 2099-01-01"),
    ],
)
async def test_what_cannot_succeed_is_said_and_not_retried(
    connections: Connections, spec: ServerSpec, cause: str
) -> None:
    status = await settled(connections, spec)
    assert (status.state, status.retry_at) == ("failed", None)
    assert cause in status.cause
    assert "\n" not in status.cause


async def test_a_server_that_exits_at_once_shows_its_last_words(connections: Connections) -> None:
    spec = raw("exit", env={"API_KEY": "sk-very-secret"})
    status = await settled(connections, spec)
    assert (status.state, status.cause) == ("failed", "The command ended with exit code 3: bye")
    assert status.stderr[-2:] == ("no licence: key [secret]", "bye")
    last = await until(connections.get("raw"), lambda status: status.cause and not status.retry_at)
    assert last.state == "failed"


async def test_a_program_that_is_no_server_is_quoted(connections: Connections) -> None:
    code = "import os; print('usage: run KEY', os.environ['API_KEY'])"
    env = {"API_KEY": "sk-very-secret"}
    spec = ServerSpec("s", "stdio", command=sys.executable, args=("-c", code), env=env)
    status = await settled(connections, spec)
    words = "The command ended with exit code 0 and printed text that is not MCP"
    assert status.cause == f"{words}: usage: run KEY [secret]"


async def test_long_last_words_are_cut(connections: Connections) -> None:
    code = "import sys; sys.exit('cannot open ' + 'db' * 400)"
    spec = ServerSpec("s", "stdio", command=sys.executable, args=("-c", code))
    cause = (await settled(connections, spec)).cause
    assert cause.startswith("The command ended with exit code 1: cannot open dbdb")
    assert len(cause) <= 240


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("hang", "The command started, but gave no answer within 0.3 seconds."),
        ("nolist", "The command started, but gave no answer within 1 seconds."),
        ("onlygarbage", "prints text that is not MCP, and gave no answer within 1 seconds."),
    ],
)
async def test_a_connect_that_hangs_is_ended(
    connections: Connections, fault: str, cause: str
) -> None:
    # What it prints has to be there by then.
    seconds = 0.3 if fault == "hang" else 1
    status = await settled(connections, raw(fault, connect_seconds=seconds))
    assert status.state == "failed"
    assert status.cause.endswith(cause)


async def test_garbage_among_the_messages_becomes_log_lines(connections: Connections) -> None:
    status = await settled(connections, raw("garbage"))
    assert status.state == "ready"
    stray = [line.text for line in status.log if line.level == "stray"]
    assert {"Welcome!", "banner", "{not json"} <= set(stray)


async def test_bad_tools_are_mended_or_left_out_one_by_one(connections: Connections) -> None:
    status = await settled(connections, raw("badtools"))
    assert names(status) == ["null", "none", "wrong", "echo"]
    assert [tool.input_schema for tool in status.tools] == [{"type": "object"}] * 4
    assert status.tools[2].annotations is None
    assert any("'wrong'" in line.text for line in status.log)
    assert any("'later'" in line.text for line in status.log)


@pytest.mark.parametrize(("fault", "count"), [("pages", 5), ("samepage", 2), ("endless", 100)])
async def test_all_pages_are_read_but_not_for_ever(
    connections: Connections, fault: str, count: int
) -> None:
    status = await settled(connections, raw(fault))
    assert (status.state, len(status.tools)) == ("ready", count)
    assert bool(status.log) == (fault != "pages")


async def test_a_result_without_its_type_is_taken_as_complete(connections: Connections) -> None:
    connection = connections.connect(raw("modern"))
    await connection.ready()
    assert connection.status.protocol == "2026-07-28"
    assert (await connection.call("echo", {"a": 1})).content[0].type == "text"


async def test_a_server_that_ends_when_probed_is_tried_the_older_way(
    connections: Connections,
) -> None:
    connection = connections.connect(raw("crashprobe"))
    status = await until(connection, lambda status: status.state == "ready")
    assert status.protocol == "2025-11-25"


async def test_the_era_is_remembered(connections: Connections, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    spec = raw(env={"RAW_SEEN": str(seen)})
    for name in ("first", "second"):
        await connections.connect(replace(spec, name=name)).ready()
    assert seen.read_text().count("server/discover") == 1


async def test_floods_on_stderr_and_in_one_line_do_no_harm(connections: Connections) -> None:
    loud = connections.connect(raw("stderr", name="loud"))
    long = connections.connect(raw("longline", str(65 * 2**20), name="long", connect_seconds=60))
    await loud.ready()
    await long.ready()
    assert 0 < len((await until(loud, lambda status: status.stderr)).stderr) <= 40
    assert "was dropped" in long.status.log[0].text


def test_only_what_a_server_needs_is_inherited() -> None:
    environ = {"PATH": "/bin", "https_proxy": "p", "OPENAI_API_KEY": "k", "NPM_CONFIG_CACHE": "c"}
    environ["npm_config__authToken"] = "t"
    assert set(inherited(environ)) == {"PATH", "https_proxy", "NPM_CONFIG_CACHE"}


@pytest.mark.full
async def test_twenty_servers_connect_side_by_side(connections: Connections) -> None:
    with anyio.fail_after(SECONDS):
        hanging = [raw("hang", name=f"h{n}", connect_seconds=1) for n in range(10)]
        working = [raw(name=f"w{n}") for n in range(10)]
        began = anyio.current_time()
        held = [connections.connect(spec) for spec in hanging + working]
        ends = [await until(each, lambda now: now.state in ("ready", "failed")) for each in held]
        took = anyio.current_time() - began
    assert [status.state for status in ends] == ["failed"] * 10 + ["ready"] * 10
    # One after the other, those that hang alone would take ten seconds.
    assert took < 8


async def test_a_name_is_taken_once_and_free_after_a_disconnect(connections: Connections) -> None:
    first = connections.connect(raw())
    with pytest.raises(ConfigurationError, match="'raw' already"):
        connections.connect(raw())
    await connections.disconnect("raw")
    assert first.status.state == "closed"
    with pytest.raises(NotFound):
        connections.get("raw")
    with pytest.raises(ToolError, match="has been disconnected"):
        await first.ready()
    await connections.connect(raw()).ready()
    assert [each.spec.name for each in connections] == ["raw"]


async def test_closing_takes_no_new_connection(connections: Connections) -> None:
    before = children()
    await connections.connect(raw()).ready()
    assert len(children()) == len(before) + 1
    await connections.aclose()
    assert children() == before
    with pytest.raises(RuntimeError):
        connections.connect(raw())
