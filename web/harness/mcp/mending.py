"""Lists and contents of a server as the SDK can take them: one bad entry costs only itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from web.harness.mcp.results import MAX_CONTENTS
from web.harness.values.messages import JsonObject

Report = Callable[[str, str], None]
"""Takes a level and one line for the log of the server."""

MAX_MENDED_CHARS = 20_000
"""Of a content of unknown kind this much is kept, as text."""

MAX_COMPLETIONS = 100
"""As many as the protocol allows."""

LIST_DEFAULTS: JsonObject = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the newer protocol wants in each result that may be kept."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """`key` holds the entries of a list; `needs` is what one of them cannot do without."""

    key: str
    noun: str
    needs: tuple[str, ...]


LISTS = {
    "tools/list": _Kind("tools", "tool", ("name",)),
    "resources/list": _Kind("resources", "resource", ("uri",)),
    "resources/templates/list": _Kind("resourceTemplates", "resource template", ("uriTemplate",)),
    "prompts/list": _Kind("prompts", "prompt", ("name",)),
}


class Mender:
    """Mends results for one version of the protocol."""

    def __init__(self, version: str, report: Report) -> None:
        self._version = version
        self._report = report

    def mend(self, method: str, result: JsonObject) -> None:
        """Changes a whole result in place where the SDK would not take it."""
        if method in LISTS:
            self._mend_list(method, LISTS[method], result)
        elif method == "tools/call":
            self._mend_content(result)
        elif method == "prompts/get":
            self._mend_messages(result)
        elif method == "resources/read":
            self._mend_contents(result)
        elif method == "completion/complete":
            self._mend_completion(result)

    def _mend_list(self, method: str, kind: _Kind, result: JsonObject) -> None:
        entries = result.get(kind.key)
        if not isinstance(entries, list):
            self._report("warning", f"The {kind.noun} list is no list; it was taken as empty.")
            entries = []
        if not isinstance(result.get("nextCursor", ""), str):
            del result["nextCursor"]
        if not self._fits(method, result | {kind.key: entries}):
            mended = (self._mended_entry(method, kind, each) for each in entries)
            entries = [each for each in mended if each is not None]
        result[kind.key] = entries

    def _mended_entry(self, method: str, kind: _Kind, entry: Any) -> JsonObject | None:
        """The entry with what is wrong taken away, None where too little is left."""

        def fits(candidate: JsonObject) -> bool:
            return self._fits(method, LIST_DEFAULTS | {kind.key: [candidate]})

        if isinstance(entry, dict) and fits(entry):
            return entry
        mended = _least(kind, entry)
        if mended is None:
            self._report("warning", f"A {kind.noun} without a {kind.needs[0]} was left out.")
            return None
        words = f"The {kind.noun} '{mended['name']}' is not described as MCP wants it; mended."
        self._report("warning", words)
        if kind.key == "tools":
            schema = entry.get("inputSchema")
            mended["inputSchema"] = {"type": "object"}
            if isinstance(schema, dict) and fits(whole := schema | {"type": "object"}):
                mended["inputSchema"] = whole
        if not fits(mended):
            return None
        for key in entry.keys() - mended.keys():
            for value in (entry[key], _fitting(entry[key], key, mended, fits)):
                if value is not None and fits(mended | {key: value}):
                    mended[key] = value
                    break
        return mended

    def _mend_content(self, result: JsonObject) -> None:
        result["content"] = self._first(result.get("content"), _note)
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
        return {"type": "text", "text": _as_text(item)}

    def _mend_messages(self, result: JsonObject) -> None:
        result["messages"] = self._first(result.get("messages"))
        if self._fits("prompts/get", result):
            return
        given = result.get("messages")
        messages = []
        for each in given if isinstance(given, list) else []:
            said = each if isinstance(each, dict) else {"content": each}
            content = said.get("content")
            if isinstance(content, str):
                content = {"type": "text", "text": content}
            role = said.get("role") if said.get("role") in ("user", "assistant") else "user"
            messages.append({"role": role, "content": self._mended_item(content)})
        result["messages"] = messages
        if not isinstance(result.get("description", ""), str):
            del result["description"]

    def _mend_contents(self, result: JsonObject) -> None:
        result["contents"] = self._first(
            result.get("contents"), lambda words: {"uri": "note:left-out", "text": words}
        )
        if self._fits("resources/read", result):
            return
        given = result.get("contents")
        kept = []
        for each in given if isinstance(given, list) else []:
            if self._fits("resources/read", LIST_DEFAULTS | {"contents": [each]}):
                kept.append(each)
            else:
                self._report("warning", "A content of a resource is not as MCP wants it; left out.")
        result["contents"] = kept

    def _mend_completion(self, result: JsonObject) -> None:
        if self._fits("completion/complete", result):
            return
        given = result.get("completion")
        values = given.get("values") if isinstance(given, dict) else None
        said = (
            [each for each in values if isinstance(each, str)] if isinstance(values, list) else []
        )
        result["completion"] = {"values": said[:MAX_COMPLETIONS]}

    def _first(self, items: Any, note: Callable[[str], JsonObject] | None = None) -> Any:
        """What is read of them at all, before each is checked; `note` says what is not."""
        if not isinstance(items, list) or len(items) <= MAX_CONTENTS:
            return items
        kept = items[: MAX_CONTENTS - 1] if note else items[:MAX_CONTENTS]
        words = f"{len(items) - len(kept):,} more parts of the result were left out."
        self._report("warning", words)
        return [*kept, note(f"[{words}]")] if note else kept

    def _fits(self, method: str, result: JsonObject) -> bool:
        return _fits(method, self._version, result)


def _fits(method: str, version: str, result: JsonObject) -> bool:
    """Whether the SDK would take this result."""
    try:
        methods.parse_server_result(method, version, result)
    except (ValidationError, RecursionError):
        return False
    return True


def _least(kind: _Kind, entry: Any) -> JsonObject | None:
    """What an entry has to have, with the name that all need; None where it has not."""
    if not isinstance(entry, dict):
        return None
    least = {key: entry.get(key) for key in kind.needs}
    if not all(isinstance(value, str) and value for value in least.values()):
        return None
    name = entry.get("name")
    return {**least, "name": name if isinstance(name, str) and name else least[kind.needs[0]]}


def _fitting(
    value: Any, key: str, entry: JsonObject, fits: Callable[[JsonObject], bool]
) -> list[Any] | None:
    """Of a list, the items that fit."""
    if not isinstance(value, list):
        return None
    return [item for item in value if fits(entry | {key: [item]})]


def _result(content: list[Any]) -> JsonObject:
    return {"content": content, "resultType": "complete"}


def _note(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def _as_text(item: Any) -> str:
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return text[:MAX_MENDED_CHARS]


# The SDK builds what it checks with when that is first used, which takes a tenth of a second. This
# module is loaded in a thread, where nothing waits for it.
for _version in (LATEST_HANDSHAKE_VERSION, *MODERN_PROTOCOL_VERSIONS):
    for _method, _each in LISTS.items():
        _fits(_method, _version, LIST_DEFAULTS | {_each.key: []})
