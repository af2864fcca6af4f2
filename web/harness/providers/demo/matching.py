"""Which tool a person means, by its name or in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from web.harness.providers.demo.arguments import (
    is_json,
    properties_of,
    raw_arguments,
    required_of,
    typed_value,
    with_defaults,
)
from web.harness.values.messages import JsonObject
from web.harness.values.model import ToolSpec

_WORD = re.compile(r"[a-z0-9]+")
_SKILL = r"[\"'`]?(?P<{}>[a-z0-9]+(?:-[a-z0-9]+)*)[\"'`]?"
_FILE = r"[\"'`]?(?P<path>[\w./-]+\.\w+)[\"'`]?"
_NO_CONTENT = re.compile(
    r"(?:a|an|and|are|at|be|by|can|could|do|does|for|from|get|give|has|have|i|in|is|it|its|me|my|of"
    r"|on|or|please|tell|that|the|this|to|tool|use|using|want|what|when|which|with|would|you|your"
    r"|call|run)"
)

REMEMBER = (
    r"^\s*(?:please\s+)?(?:remember|keep\s+in\s+mind)\b[\s,:]*(?:that\b|this\b[\s,:]*)?\s*"
    r"(?P<text>\S.*?)\s*$"
)
"""A wish to have something remembered, with what that is."""

_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (REMEMBER, ("save_memory",)),
    (
        r"\bwhat\s+(?:do|can)\s+you\s+(?:remember|recall|know)\s+(?:about|of)\s+"
        r"(?P<query>.+?)[\s?.!]*$",
        ("recall_memories",),
    ),
    (r"\bwhat\s+(?:do|can)\s+you\s+(?:remember|recall)[\s?.!]*$", ("recall_memories",)),
    (r"^(?:please\s+)?recall\s+(?P<query>.+?)[\s?.!]*$", ("recall_memories",)),
    (
        r"^(?:please\s+)?(?:delegate|(?:ask|let|have)\s+a\s+sub-?agent(?:\s+to)?)\s*[:,]?\s+"
        r"(?P<task>\S.*)$",
        ("delegate",),
    ),
    (
        r"\b(?:time|date)\b.*?\bin\s+(?P<timezone>[\w/+ -]+?)[\s?.!]*$",
        ("current_time", "time", "clock"),
    ),
    (r"\b(?:what(?:'s| is)?|tell me)\b.*\b(?:time|day|date)\b", ("current_time", "time", "clock")),
    (
        r"(?:calculate|compute|work out|what(?:'s| is))\s+(?P<expression>[-(\d].*?)[\s?.]*$",
        ("calculate", "calculator", "compute"),
    ),
    (
        rf"\b(?:write|create|make|save)\b.*?\bfile\b.*?{_FILE}"
        r"\s*(?:saying|with(?: the)?(?: text| content)?|containing|that says|:)\s*(?P<content>.+)$",
        ("write_file",),
    ),
    (
        rf"\b(?:write|save|put)\s+(?P<content>.+?)\s+(?:to|into|in)\s+(?:the file\s+)?{_FILE}\s*$",
        ("write_file",),
    ),
    (
        r"\b(?:list|show|which|what)\b.*\bfiles\b(?!\s*\.)",
        ("list_files", "list_directory", "list_dir", "ls"),
    ),
    (
        r"\brun\s+(?:the\s+)?(?:script\s+)?[\"'`]?(?P<path>[\w./-]+\.(?:py|sh))[\"'`]?\s+"
        rf"(?:of|from|in)\s+(?:the\s+)?(?:skill\s+)?{_SKILL.format('skill')}(?:\s+skill)?"
        r"(?:\s+(?:on|with|for)\s+(?P<arguments>\S.*?))?[\s?.!]*$",
        ("run_skill_script",),
    ),
    (
        rf"\b(?:read|open|show(?: me)?)\s+(?:the\s+)?(?:file\s+)?{_FILE}\s+"
        rf"(?:of|from|in)\s+(?:the\s+)?skill\s+{_SKILL.format('skill')}",
        ("read_skill_file",),
    ),
    (
        r"\b(?:use|load|open|try|apply|follow)\s+(?:the\s+|my\s+)?skill\s+(?:called\s+|named\s+)?"
        + _SKILL.format("name"),
        ("use_skill",),
    ),
    (
        r"\b(?:use|load|open|try|apply|follow)\s+(?:the\s+|my\s+)?"
        rf"{_SKILL.format('name')}\s+skill\b",
        ("use_skill",),
    ),
    (rf"^(?:please\s+)?(?:read|open|show|show me|cat)\s+(?:the file\s+)?{_FILE}", ("read_file",)),
)
"""Ways to ask for what most chats have. A named group becomes the argument of that name."""


def named(tools: Iterable[ToolSpec], name: str) -> ToolSpec | None:
    """The tool of this name; the part after a server's prefix is enough if it is the only one."""
    wanted = _plain(name)
    tools = list(tools)
    for tool in tools:
        if _plain(tool.name) == wanted:
            return tool
    ending = [tool for tool in tools if _plain(tool.name).endswith("_" + wanted)]
    return ending[0] if len(ending) == 1 else None


def in_words(tools: tuple[ToolSpec, ...], words: str) -> tuple[ToolSpec, str] | None:
    """The tool that these words ask for and its arguments as JSON text, or None."""
    for find in (_by_phrase, _by_name, _by_meaning):
        found: tuple[ToolSpec, str] | None = find(tools, words)
        if found is not None:
            return found
    return None


def _by_phrase(tools: tuple[ToolSpec, ...], words: str) -> tuple[ToolSpec, str] | None:
    for pattern, names in _PHRASES:
        match = re.search(pattern, words.strip(), re.I | re.S)
        tool = _first(tools, names) if match else None
        if match is not None and tool is not None:
            known = properties_of(tool)
            given: JsonObject = {
                name: typed_value(value.strip(), known[name])
                for name, value in match.groupdict().items()
                if name in known and value is not None
            }
            if not given and match.groupdict():
                # Another tool of that name: its first parameter takes the words.
                return tool, raw_arguments(tool, next(iter(match.groupdict().values())))
            return tool, _with_defaults(tool, given)
    return None


def _by_name(tools: tuple[ToolSpec, ...], words: str) -> tuple[ToolSpec, str] | None:
    """A tool whose name stands in the words: `current time`, `current_time`; the longest wins."""
    for tool in sorted(tools, key=lambda tool: -len(tool.name)):
        parts = _name_parts(tool)
        if len(parts) == 1 and len(parts[0]) < 4:
            continue
        match = re.search(r"\b" + r"[\s_.-]+".join(map(re.escape, parts)) + r"\b", words, re.I)
        if match is not None:
            after = re.sub(r"^[\s:,]*(?:(?:tool|with|for|of|to)\s+)?", "", words[match.end() :])
            return tool, _filled(tool, after.strip(" ?.!") if "=" not in after else after)
    return None


def _by_meaning(tools: tuple[ToolSpec, ...], words: str) -> tuple[ToolSpec, str] | None:
    """A tool whose name and description share enough words with what was asked."""
    asked = stems_of(words)
    best: tuple[int, ToolSpec] | None = None
    for tool in tools:
        name = stems_of(" ".join(_name_parts(tool)))
        in_name, in_description = asked & name, (asked & stems_of(tool.description)) - name
        if name and (in_name == name or (in_name and len(in_description) >= 2)):
            score = 3 * len(in_name) + len(in_description)
            if best is None or score > best[0]:
                best = (score, tool)
    if best is None:
        return None
    return best[1], _filled(best[1], _without_request(best[1], words))


def _without_request(tool: ToolSpec, words: str) -> str:
    """The words less those at the start that only say which tool is meant."""
    known = stems_of(" ".join(_name_parts(tool)))
    rest = words.split()
    while rest and (not stems_of(rest[0]) or stems_of(rest[0]) <= known):
        rest.pop(0)
    return " ".join(rest).strip(" ?.!")


def _filled(tool: ToolSpec, typed: str) -> str:
    raw = raw_arguments(tool, typed)
    if is_json(typed):
        return raw
    return _with_defaults(tool, json.loads(raw))


def _with_defaults(tool: ToolSpec, arguments: JsonObject) -> str:
    return json.dumps(with_defaults(tool, arguments), ensure_ascii=False)


def _first(tools: tuple[ToolSpec, ...], names: tuple[str, ...]) -> ToolSpec | None:
    matches: list[Callable[[str, str], bool]] = [str.__eq__, lambda tool, name: name in tool]
    for fits in matches:
        for name in names:
            for tool in tools:
                if fits(_plain(tool.name), name):
                    return tool
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _name_parts(tool: ToolSpec) -> list[str]:
    """The words of a tool's name, without the prefix of a server before `__`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool.name.rpartition("__")[2])
    return _WORD.findall(spaced.lower()) or [tool.name]


def stems_of(text: str) -> set[str]:
    """The words that carry meaning, cut to a rough stem."""
    words = {word for word in _WORD.findall(text.lower()) if not _NO_CONTENT.fullmatch(word)}
    return {re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word for word in words}


def example_call(tool: ToolSpec) -> str:
    """How to call this tool by hand, with values that fit its schema."""
    properties = properties_of(tool)
    names = required_of(tool) or list(properties)[:1]
    parts = [f"{name}={_example(name, properties.get(name, {}))}" for name in names]
    return " ".join([f"/{tool.name}", *parts])


_EXAMPLES = {"path": "note.txt", "content": '"hello"', "expression": "6*7", "timezone": "UTC"}
_TYPE_EXAMPLES = {
    "integer": "1",
    "number": "1.5",
    "boolean": "true",
    "array": "[]",
    "object": "{}",
}


def _example(name: str, schema: JsonObject) -> str:
    values = schema.get("examples") or schema.get("enum") or []
    if values:
        return json.dumps(values[0], ensure_ascii=False)
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    kind = schema.get("type")
    return _TYPE_EXAMPLES.get(kind, "text") if isinstance(kind, str) else "text"
