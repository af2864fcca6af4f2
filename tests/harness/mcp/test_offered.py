"""Tools of a server are tools of an agent: named, described, asking, checked, fingerprinted."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent, Tool as ServerTool, ToolAnnotations

from web.harness.mcp.offered import (
    MAX_DESCRIPTION_CHARS,
    OfferedTool,
    fingerprint_of,
    hints_of,
    offered_tools,
)
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Blob, PermissionLevel, ToolContext, ToolOutput
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext("call-1")


class Server:
    """Answers every call with one result, or refuses it."""

    def __init__(self, *content: Any, refusal: str = "", **more: Any) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self.result = CallToolResult(content=list(content), **more)
        self.refusal = refusal

    async def call(self, name: str, arguments: JsonObject, **_: Any) -> CallToolResult:
        self.calls.append((name, arguments))
        if self.refusal:
            raise ToolError(self.refusal)
        return self.result


def tool(name: str = "read", **fields: Any) -> ServerTool:
    return ServerTool(name=name, **{"input_schema": {"type": "object"}, **fields})


def offer(*tools: ServerTool, server: Server | None = None) -> list[OfferedTool]:
    return offered_tools("srv", tools, (server or Server()).call)


async def run(offered: OfferedTool, arguments: JsonObject) -> ToolOutput:
    return await ToolRegistry([offered.tool]).run(offered.tool.name, arguments, CONTEXT, 10)


def test_a_tool_has_a_name_for_models_and_one_for_the_server() -> None:
    plain, odd = offer(tool("read"), tool("read file ü"))
    assert (plain.tool.name, plain.wire_name, plain.server) == ("srv__read", "read", "srv")
    assert odd.wire_name == "read file ü"
    assert odd.tool.name.startswith("srv__read_file_u_")
    registry = ToolRegistry([plain.tool, odd.tool])
    assert len(registry.specs()) == 2


def test_names_do_not_depend_on_the_order_or_on_other_tools() -> None:
    tools = [tool(name) for name in ("a b", "a_b", "a/b", "b", "x" * 200)]
    forward = {each.wire_name: each.tool.name for each in offer(*tools)}
    backward = {each.wire_name: each.tool.name for each in offer(*reversed(tools))}
    assert forward == backward
    assert offer(tools[0])[0].tool.name == forward["a b"]
    assert len(set(forward.values())) == len(tools)


def test_of_two_tools_that_are_called_alike_the_first_is_offered() -> None:
    [one] = offer(tool("read", description="One."), tool("read", description="Two."))
    assert one.tool.description == "One."


def test_a_name_that_a_built_in_tool_has_is_not_used() -> None:
    [one] = offered_tools("srv", [tool("read")], Server().call, taken={"srv__read"})
    assert one.tool.name != "srv__read"
    assert ToolRegistry([one.tool]).get(one.tool.name) is one.tool


def test_words_of_a_server_are_bounded_and_hide_nothing() -> None:
    [one] = offer(
        tool(
            description="Reads.\u200b\U000e0041\u202e" + "x" * 10_000,
            title="The\u2066 \x1b[1mreader\n" + "y" * 500,
        )
    )
    assert one.tool.description.startswith("Reads.xxx")
    assert len(one.tool.description) == MAX_DESCRIPTION_CHARS
    assert one.title.startswith("The [1mreader yyy")
    assert len(one.title) == 100
    [plain] = offer(tool(annotations=ToolAnnotations(title="From the hints")))
    assert (plain.title, plain.tool.description) == ("From the hints", "From the hints")
    assert offer(tool())[0].title == "read"


def test_what_the_schema_cannot_say_is_in_the_description() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    [one] = offer(tool(description="Reads.", input_schema=schema))
    assert one.tool.description == "Reads.\n\nNeeds one of these sets of arguments: a | b."


@pytest.mark.parametrize(
    ("annotations", "hints", "replay"),
    [
        (None, (), "manual"),
        (ToolAnnotations(), (), "manual"),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), ("read-only",), "safe"),
        (ToolAnnotations(idempotent_hint=True), ("idempotent",), "idempotent"),
        (
            ToolAnnotations(destructive_hint=True, open_world_hint=True),
            ("destructive", "open world"),
            "manual",
        ),
        (ToolAnnotations(read_only_hint=False, open_world_hint=False), (), "manual"),
    ],
)
def test_annotations_are_hints_and_never_a_permission(
    annotations: ToolAnnotations | None, hints: tuple[str, ...], replay: str
) -> None:
    [one] = offer(tool(annotations=annotations))
    assert one.hints == one.tool.hints == hints == hints_of(annotations)
    assert one.tool.replay == replay
    assert one.tool.permission is PermissionLevel.ASK


def test_a_tool_that_changed_has_another_fingerprint() -> None:
    first: dict[str, Any] = {
        "description": "Reads.",
        "title": "Reader",
        "input_schema": {"type": "object", "properties": {"a": {}}},
        "output_schema": {"type": "object"},
        "annotations": ToolAnnotations(read_only_hint=True),
    }
    changes: list[dict[str, Any]] = [
        {},
        {"name": "write"},
        {"description": "Reads.\u200b"},
        {"title": "reader"},
        {"input_schema": {"type": "object", "properties": {"b": {}}}},
        {"output_schema": None},
        {"annotations": ToolAnnotations(read_only_hint=False)},
    ]
    prints = [fingerprint_of(tool(**{**first, **change})) for change in changes]
    assert len(set(prints)) == len(changes)
    turned = {"properties": {"a": {}}, "type": "object"}
    assert fingerprint_of(tool(**{**first, "input_schema": turned})) == prints[0]
    assert offer(tool(**first))[0].fingerprint == prints[0]


async def test_a_call_goes_to_the_server_by_its_own_names() -> None:
    server = Server(TextContent(text="done"))
    schema = {"type": "object", "properties": {"größe": {"type": "integer"}}}
    [one] = offer(tool("read it", input_schema=schema), server=server)
    output = await run(one, {"gr_e": 3})
    assert (output.text, output.is_error) == ("done", False)
    assert server.calls == [("read it", {"größe": 3})]


async def test_arguments_that_do_not_fit_never_reach_the_server() -> None:
    server = Server(TextContent(text="done"))
    [one] = offer(tool(input_schema={"type": "object", "required": ["path"]}), server=server)
    output = await run(one, {})
    assert output.is_error
    assert "'path' is a required property" in output.text
    assert server.calls == []


async def test_failures_of_server_and_connection_are_failed_calls() -> None:
    [said] = offer(tool(), server=Server(TextContent(text="No."), is_error=True))
    assert await run(said, {}) == ToolOutput.of("No.", is_error=True)
    [cut] = offer(tool(), server=Server(refusal="The server srv is gone."))
    assert await run(cut, {}) == ToolOutput.of("The server srv is gone.", is_error=True)


async def test_pictures_are_handed_on_and_structured_output_is_checked() -> None:
    kept: list[Blob] = []

    def keep(blob: Blob) -> bool:
        kept.append(blob)
        return True

    server = Server(
        ImageContent(data="/9j/AAAA", mime_type="image/jpeg"), structured_content={"n": "x"}
    )
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    [one] = offered_tools("srv", [tool(output_schema=schema)], server.call, keep=keep)
    output = await run(one, {})
    assert [part.kind for part in output.parts] == ["image", "structured", "note"]
    assert [blob.sha256 for blob in kept] == [output.parts[0].sha256]
    assert "does not fit the tool's own schema" in output.text
