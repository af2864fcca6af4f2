"""Resources, templates and prompts are listed beside the tools, in both protocols."""

from __future__ import annotations

import anyio
import pytest

from tests.support.mcp_wire import SECONDS, offering, raw, until
from web.harness.mcp.connections import Connections
from web.harness.mcp.status import Status

pytestmark = pytest.mark.anyio

ERAS = ("modern", "legacy")


def words(status: Status) -> str:
    return "\n".join(line.text for line in status.log)


def complete(status: Status) -> bool:
    return bool(status.resources and status.templates and status.prompts)


@pytest.mark.parametrize("era", ERAS)
async def test_the_lists_come_after_the_tools(connections: Connections, era: str) -> None:
    connection = connections.connect(offering(era, "slow"))
    ready = await until(connection, lambda status: status.state == "ready")
    assert [tool.name for tool in ready.tools] == ["step"]
    assert not complete(ready)
    assert (ready.completes, ready.subscribable) == (True, True)
    status = await until(connection, complete)
    assert [each.uri for each in status.resources] == ["note://1"]
    assert [each.uri_template for each in status.templates] == ["n://{x}"]
    [prompt] = status.prompts
    assert (prompt.name, [each.name for each in prompt.arguments or ()]) == ("plan", ["where"])
    assert status.tools is ready.tools


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_that_has_changed_is_read_again(connections: Connections, era: str) -> None:
    connection = connections.connect(offering(era))
    await until(connection, complete)
    with anyio.fail_after(SECONDS):
        await connection.call("step", {"do": "grow"})
    status = await until(
        connection,
        lambda status: len(status.resources) == len(status.templates) == len(status.prompts) == 2,
    )
    assert [each.name for each in status.resources] == ["one", "onelate"]
    assert [each.name for each in status.templates] == ["t", "tlate"]
    assert [each.name for each in status.prompts] == ["plan", "planlate"]
    await until(connection, lambda status: len(status.tools) == 2)


@pytest.mark.parametrize("era", ERAS)
async def test_one_bad_entry_does_not_cost_the_others(connections: Connections, era: str) -> None:
    connection = connections.connect(offering(era, "bad"))
    status = await until(connection, complete)
    assert [(each.uri, each.name) for each in status.resources] == [
        ("note://nameless", "note://nameless"),
        ("note://2", "two"),
        ("note://1", "one"),
    ]
    two = status.resources[1]
    assert (two.title, two.size, two.mime_type) == ("Two", None, None)
    assert [(each.uri_template, each.name) for each in status.templates] == [
        ("m://{x}", "m://{x}"),
        ("n://{x}", "t"),
    ]
    assert [each.name for each in status.prompts] == ["odd", "plan"]
    assert [each.name for each in status.prompts[0].arguments or ()] == ["good"]
    assert "A resource without a uri was left out." in words(status)
    assert "The prompt 'odd' is not described as MCP wants it; mended." in words(status)


async def test_pages_are_followed_until_they_repeat(connections: Connections) -> None:
    connection = connections.connect(offering("legacy", "pages"))
    status = await until(connection, complete)
    assert [each.name for each in status.resources] == ["one0", "one1", "one2", "one3"]
    assert len(status.templates) == len(status.prompts) == 4
    await connections.disconnect("offering")
    connection = connections.connect(offering("modern", "samepage"))
    status = await until(connection, complete)
    assert len(status.resources) == 2
    assert "The resource list does not end; what came was kept." in words(status)


@pytest.mark.parametrize(
    "fault", ["refuses resources/list", pytest.param("silent prompts/list", marks=pytest.mark.full)]
)
async def test_a_list_that_cannot_be_read_costs_a_line(
    connections: Connections, fault: str
) -> None:
    connection = connections.connect(offering("legacy", fault, connect_seconds=2))
    status = await until(connection, lambda status: status.templates and status.log)
    kind = fault.partition(" ")[2].removesuffix("s/list")
    assert status.log[0].text.startswith(f"The {kind} list could not be read: ")
    assert "connect" not in status.log[0].text
    assert status.state == "ready"
    assert len(status.tools) == 1


async def test_a_server_without_them_is_not_asked(connections: Connections) -> None:
    connection = connections.connect(raw())
    with anyio.fail_after(SECONDS):
        await connection.ready()
        await connection.call("echo", {})
    status = connection.status
    assert (status.resources, status.templates, status.prompts) == ((), (), ())
    assert (status.completes, status.subscribable, status.log) == (False, False, ())
