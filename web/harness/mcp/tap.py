"""Between a server and the SDK: what is read from the wire is mended before it is judged.

One tool, one content item or one line that is not as the protocol wants it would otherwise cost
the whole list, the whole result or the whole wait.
"""

from __future__ import annotations

import json
import re

import mcp_types as types
import pydantic_core
from mcp.shared.message import SessionMessage
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from web.harness.mcp.mending import LIST_DEFAULTS, LISTS, Mender, Report
from web.harness.mcp.sizes import MAX_LIST_VALUES, MAX_TOOLS_VALUES, TOO_LARGE, Room
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable_json

MAX_NESTING = 150
"""Levels of an answer that is read by the slow way; the SDK's parser refuses some 200."""

ENDS_BYTES = 1000
"""What is looked at of an answer that is not read, at its start and at its end."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")')
_CACHEABLE = frozenset(
    {
        *("server/discover", "tools/list", "prompts/list", "resources/list"),
        *("resources/templates/list", "resources/read"),
    }
)


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
        self._rooms: dict[str, Room] = {}

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Takes note of a request, to know what its answer is an answer to."""
        if not isinstance(message, types.JSONRPCRequest):
            return
        self._methods[message.id] = message.method
        if message.method in LISTS and "cursor" not in (message.params or {}):
            self._rooms[message.method] = _room(message.method)
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

    def too_large(self, start: bytes, end: bytes, why: str) -> list[SessionMessage] | None:
        """The error in place of an answer that starts and ends so; None where it is none."""
        return _refused(start, end, f"{TOO_LARGE}: {why}.")

    def _method_of(self, answer_id: types.RequestId) -> str | None:
        method = self._methods.pop(answer_id, None)
        if method is None and isinstance(answer_id, str) and answer_id.isdecimal():
            return self._methods.pop(int(answer_id), None)
        return method

    def _mend(self, method: str, result: JsonObject) -> None:
        if self._modern:
            result.setdefault("resultType", "complete")
            if method in _CACHEABLE and result["resultType"] == "complete":
                for key, value in LIST_DEFAULTS.items():
                    result.setdefault(key, value)
        if method in LISTS:
            self._limit(method, result)
        if method == "tools/list":
            self._keep_output_schemas(result)
        if result.get("resultType", "complete") == "complete":
            Mender(self._version, self._report).mend(method, result)

    @property
    def _version(self) -> str:
        return MODERN_PROTOCOL_VERSIONS[-1] if self._modern else LATEST_HANDSHAKE_VERSION

    def _limit(self, method: str, result: JsonObject) -> None:
        kind = LISTS[method]
        entries = result.get(kind.key)
        if isinstance(entries, list):
            room = self._rooms.setdefault(method, _room(method))
            result[kind.key] = room.kept(entries, kind.noun, self._report)

    def _keep_output_schemas(self, result: JsonObject) -> None:
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict):
                schema = tool.pop("outputSchema", None)
                if isinstance(schema, dict) and isinstance(tool.get("name"), str):
                    self.output_schemas[tool["name"]] = schema


def _room(method: str) -> Room:
    return Room(MAX_TOOLS_VALUES if method == "tools/list" else MAX_LIST_VALUES)


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
        # Read first and judged then: read for each kind of message, it takes eight times as long.
        value = pydantic_core.from_json(line)
        return [SessionMessage(types.jsonrpc_message_adapter.validate_python(value, by_name=False))]
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
        words = "The server's answer could not be read."
        return _refused(line[:ENDS_BYTES], line[-ENDS_BYTES:], words)


def _refused(start: bytes, end: bytes, words: str) -> list[SessionMessage] | None:
    # An id stands at one end of a message; in the middle it is part of the content.
    found = _ID.search(start[:300]) or _ID.search(end[-300:])
    if found is None or not re.search(rb'"(result|error)"\s*:', start + end):
        return None
    error = types.ErrorData(code=types.PARSE_ERROR, message=words)
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
