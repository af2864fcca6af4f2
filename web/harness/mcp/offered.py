"""The tools of a server as tools of an agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol

import mcp_types

from web.harness.mcp.arguments import ArgumentCheck
from web.harness.mcp.asking import Asker
from web.harness.mcp.checking import SchemaCheck
from web.harness.mcp.naming import tool_name
from web.harness.mcp.questions import asker
from web.harness.mcp.results import tool_output
from web.harness.mcp.sampling import Sampler
from web.harness.mcp.schemas import model_schema
from web.harness.mcp.wording import tidy
from web.harness.tools.tool import (
    Continued,
    Handler,
    KeepBlob,
    PermissionLevel,
    ReplayPolicy,
    ReportProgress,
    Tool,
    ToolContext,
    ToolOutput,
)
from web.harness.values.messages import JsonObject

MAX_DESCRIPTION_CHARS = 4_000
MAX_TITLE_CHARS = 100
LONGEST_CALL_SECONDS = 24 * 3600.0
"""The connection cuts a silent call much sooner; one that tells of its progress goes on."""


class Caller(Protocol):
    """Calls a tool of one server by the server's own name; see `Connection.call`."""

    async def __call__(
        self,
        name: str,
        arguments: JsonObject,
        /,
        *,
        on_progress: ReportProgress | None = None,
        ask: Asker | None = None,
        sample: Sampler | None = None,
        continued: Continued | None = None,
    ) -> mcp_types.CallToolResult: ...


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of the server `server`.

    `tool.name` is what models call it, `wire_name` what the server does. `fingerprint` changes
    with anything that a person may have read before they allowed it: then it must ask again.
    """

    tool: Tool
    wire_name: str
    title: str
    hints: tuple[str, ...]
    fingerprint: str
    server: str


def offered_tools(
    server_name: str,
    tools: Sequence[mcp_types.Tool],
    call: Caller,
    taken: Container[str] = (),
    keep: KeepBlob | None = None,
    sample: Sampler | None = None,
) -> list[OfferedTool]:
    """The tools in the server's order, each one asking before it runs.

    `taken` are the names of other tools. `keep` takes pictures and sound of results, `sample`
    asks the model for the server, which the person has to agree to each time. Of two tools that
    the server calls alike, the first. Touches nothing: a long list is best done in a thread.
    """
    offered: dict[str, OfferedTool] = {}
    names: set[str] = set()
    for tool in tools:
        if tool.name in offered:
            continue
        name = tool_name(server_name, tool.name, _Both(names, taken))
        names.add(name)
        offered[tool.name] = OfferedTool(
            _as_tool(name, tool, _handler(tool, call, keep, sample)),
            tool.name,
            _title(tool),
            hints_of(tool.annotations),
            fingerprint_of(tool),
            server_name,
        )
    return list(offered.values())


def hints_of(annotations: mcp_types.ToolAnnotations | None) -> tuple[str, ...]:
    """What the server itself says of a tool, in words; nothing where it says nothing.

    They are for people to see. A server may lie: no permission is taken from them.
    """
    if annotations is None:
        return ()
    read_only = annotations.read_only_hint is True
    said = {
        "read-only": read_only,
        "destructive": annotations.destructive_hint is True and not read_only,
        "idempotent": annotations.idempotent_hint is True and not read_only,
        "open world": annotations.open_world_hint is True,
    }
    return tuple(word for word, holds in said.items() if holds)


def fingerprint_of(tool: mcp_types.Tool) -> str:
    """SHA-256 over name, titles, description, schemas and annotations, as the server sent them."""
    annotations = tool.annotations
    told = [
        tool.name,
        tool.title,
        tool.description,
        tool.input_schema,
        tool.output_schema,
        annotations.model_dump(mode="json") if annotations is not None else None,
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class _Both(Container[str]):
    def __init__(self, one: Container[str], other: Container[str]) -> None:
        self._one = one
        self._other = other

    def __contains__(self, name: object) -> bool:
        return name in self._one or name in self._other


def _as_tool(name: str, tool: mcp_types.Tool, handler: Handler) -> Tool:
    schema = model_schema(tool.input_schema)
    description = tidy(tool.description, MAX_DESCRIPTION_CHARS) or _title(tool)
    return Tool(
        name=name,
        description=f"{description}\n\n{schema.note}" if schema.note else description,
        input_schema=schema.schema,
        handler=handler,
        permission=PermissionLevel.ASK,
        timeout_seconds=LONGEST_CALL_SECONDS,
        replay=_replay(tool.annotations),
        validate=ArgumentCheck(name, tool.input_schema, schema),
        hints=hints_of(tool.annotations),
    )


def _handler(
    tool: mcp_types.Tool, call: Caller, keep: KeepBlob | None, sample: Sampler | None
) -> Handler:
    wire_name = tool.name
    check = SchemaCheck(tool.output_schema) if tool.output_schema is not None else None

    async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        result = await call(
            wire_name,
            arguments,
            on_progress=context.progress,
            ask=asker(context.ask),
            sample=sample,
            continued=context.continued,
        )
        return await tool_output(result, check, keep)

    return handle


def _replay(annotations: mcp_types.ToolAnnotations | None) -> ReplayPolicy:
    if annotations is not None and annotations.read_only_hint is True:
        return "safe"
    if annotations is not None and annotations.idempotent_hint is True:
        return "idempotent"
    return "manual"


def _title(tool: mcp_types.Tool) -> str:
    said = tool.title or (tool.annotations.title if tool.annotations is not None else None)
    return tidy(said or tool.name, MAX_TITLE_CHARS, one_line=True)
