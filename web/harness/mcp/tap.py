"""Between a server and the SDK: what is read from the wire is mended before it is judged.

One tool, one content item or one line that is not as the protocol wants it would otherwise cost
the whole list, the whole result or the whole wait.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable_json

MAX_NESTING = 150
"""Levels of an answer that is read by the slow way; the SDK's parser refuses some 200."""
MAX_MENDED_CHARS = 20_000
"""Of a content item of unknown kind this much is kept, as text."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")')
_CACHEABLE = frozenset(
    {
        *("server/discover", "tools/list", "prompts/list", "resources/list"),
        *("resources/templates/list", "resources/read"),
    }
)
_LIST_DEFAULTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

Report = Callable[[str, str], None]
"""Takes a level and one line for the log of the server."""


class Tap:
    """Sees every message both ways. Messages to the SDK may be changed on the way.

    `output_schemas` are the output schemas by tool name. They are kept from the SDK, which would
    throw away a result that does not fit one: such a result is shown, with a warning.
    """

    def __init__(self, report: Report) -> None:
        self.output_schemas: dict[str, JsonObject] = {}
        self._report = report
        self._methods: dict[types.RequestId, str] = {}
        self._modern = False

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Takes note of a request, to know what its answer is an answer to."""
        if not isinstance(message, types.JSONRPCRequest):
            return
        self._methods[message.id] = message.method
        meta = (message.params or {}).get("_meta") or {}
        self._modern = meta.get(types.PROTOCOL_VERSION_META_KEY) in MODERN_PROTOCOL_VERSIONS

    def received(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage:
        """The message as the SDK can take it."""
        if isinstance(message, types.JSONRPCError) and message.id is not None:
            self._methods.pop(message.id, None)
        if isinstance(message, types.JSONRPCResponse):
            method = self._method_of(message.id)
            if method is not None:
                self._mend(method, message.result)
        return message

    def _method_of(self, answer_id: types.RequestId) -> str | None:
        method = self._methods.pop(answer_id, None)
        if method is None and isinstance(answer_id, str) and answer_id.isdecimal():
            return self._methods.pop(int(answer_id), None)
        return method

    def _mend(self, method: str, result: JsonObject) -> None:
        if self._modern:
            result.setdefault("resultType", "complete")
            if method in _CACHEABLE and result["resultType"] == "complete":
                for key, value in _LIST_DEFAULTS.items():
                    result.setdefault(key, value)
        if method == "tools/list":
            self._mend_tools(result)
        elif method == "tools/call" and result.get("resultType", "complete") == "complete":
            self._mend_content(result)

    @property
    def _version(self) -> str:
        return MODERN_PROTOCOL_VERSIONS[-1] if self._modern else LATEST_HANDSHAKE_VERSION

    def _mend_tools(self, result: JsonObject) -> None:
        tools = result.get("tools")
        if not isinstance(tools, list):
            self._report("warning", "The tool list is no list; it was taken as empty.")
            tools = []
        if not isinstance(result.get("nextCursor", ""), str):
            del result["nextCursor"]
        for tool in tools:
            if isinstance(tool, dict):
                schema = tool.pop("outputSchema", None)
                if isinstance(schema, dict) and isinstance(tool.get("name"), str):
                    self.output_schemas[tool["name"]] = schema
        if self._fits("tools/list", result | {"tools": tools}):
            result["tools"] = tools
        else:
            result["tools"] = [tool for tool in map(self._mended_tool, tools) if tool is not None]

    def _mended_tool(self, tool: Any) -> JsonObject | None:
        """The tool with what is wrong taken away, None where its name is."""
        if self._fits_tool(tool):
            return tool  # type: ignore[no-any-return]
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name:
            self._report("warning", "A tool without a name was left out.")
            return None
        self._report("warning", f"The tool '{name}' is not described as MCP wants it; mended.")
        schema = tool.get("inputSchema")
        schema = dict(schema) if isinstance(schema, dict) else {}
        mended: JsonObject = {"name": name, "inputSchema": schema | {"type": "object"}}
        if not self._fits_tool(mended):
            mended["inputSchema"] = {"type": "object"}
        for key in tool.keys() - mended.keys():
            if self._fits_tool(mended | {key: tool[key]}):
                mended[key] = tool[key]
        return mended

    def _fits_tool(self, tool: Any) -> bool:
        return isinstance(tool, dict) and self._fits(
            "tools/list", _LIST_DEFAULTS | {"tools": [tool]}
        )

    def _mend_content(self, result: JsonObject) -> None:
        if self._fits("tools/call", result):
            return
        content = result.get("content")
        items = content if isinstance(content, list) else [] if content is None else [content]
        result["content"] = [self._mended_item(item) for item in items]
        if not isinstance(result.get("isError", False), bool):
            result["isError"] = bool(result["isError"])
        for key in ("_meta", "structuredContent"):
            if key in result and not self._fits("tools/call", _result([]) | {key: result[key]}):
                self._report("warning", f"'{key}' of a result is not as MCP wants it; left out.")
                del result[key]

    def _mended_item(self, item: Any) -> Any:
        if self._fits("tools/call", _result([item])):
            return item
        self._report("warning", "A part of a result is of no kind that MCP knows; shown as text.")
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        return {"type": "text", "text": text[:MAX_MENDED_CHARS]}

    def _fits(self, method: str, result: JsonObject) -> bool:
        """Whether the SDK would take this result."""
        try:
            methods.parse_server_result(method, self._version, result)
        except (ValidationError, RecursionError):
            return False
        return True


def _result(content: list[Any]) -> JsonObject:
    return {"content": content, "resultType": "complete"}


def parsed(line: bytes) -> list[SessionMessage] | None:
    """The messages of one line, None where it is none.

    What the SDK's parser refuses although it is JSON (half characters, deep nesting) is read by a
    slower way; an answer that cannot be read at all becomes an error for its request, which would
    wait for ever otherwise.
    """
    line = line.strip().removeprefix(b"\xef\xbb\xbf")
    if not line.startswith((b"{", b"[")):
        return None
    try:
        return [SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))]
    except ValueError:
        pass
    try:
        value = sayable_json(json.loads(line.decode(errors="replace")), MAX_NESTING)
        batch = value if isinstance(value, list) else [value]
        return [
            SessionMessage(types.jsonrpc_message_adapter.validate_python(each, by_name=False))
            for each in batch
        ]
    except (ValueError, RecursionError):
        return _unreadable(line)


def _unreadable(line: bytes) -> list[SessionMessage] | None:
    # An id stands at one end of a message; in the middle it is part of the content.
    found = _ID.search(line[:300]) or _ID.search(line[-300:])
    if found is None or not re.search(rb'"(result|error)"\s*:', line[:1000] + line[-1000:]):
        return None
    error = types.ErrorData(
        code=types.PARSE_ERROR, message="The server's answer could not be read."
    )
    answer = types.JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]), error=error)
    return [SessionMessage(answer)]


def without_flood(messages: list[SessionMessage]) -> list[SessionMessage]:
    """The messages without progress that a later one of the same batch overtakes."""
    seen: set[object] = set()
    kept = []
    for each in reversed(messages):
        message = each.message
        if (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/progress"
        ):
            token = (message.params or {}).get("progressToken")
            if isinstance(token, str | int):
                if token in seen:
                    continue
                seen.add(token)
        kept.append(each)
    kept.reverse()
    return kept
