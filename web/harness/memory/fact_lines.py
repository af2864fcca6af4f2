"""The lines of a file of facts: one JSON object each, with what a person may have added to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from web.harness.memory.times import iso, seconds_of

GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. Times are in seconds since 1970; `score` is how well it fits a query, to be
    compared with others of the same search alone."""

    id: str
    category: str
    text: str
    created: float = 0.0
    updated: float = 0.0
    score: float = field(default=0.0, compare=False)

    @property
    def digest(self) -> str:
        """Tells what it says from what another state of it says."""
        whole = json.dumps([self.category, self.text]).encode()
        return hashlib.sha256(whole).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end, and the fact it holds, or what is wrong with it; an empty line has
    neither."""

    raw: bytes
    fact: Fact | None = None
    fault: str = ""


Lines = list[Line]


def read(content: bytes, known: Lines) -> Lines:
    """The lines of a file. Those among the `known` are not read again. Of two facts with one id the
    second is at fault."""
    before = {line.raw: line for line in known if not line.fault}
    lines: list[Line] = []
    ids: set[str] = set()
    for raw in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        raw = raw.removesuffix(b"\r")
        line = before.get(raw) or _line(raw)
        id = line.fact.id if line.fact is not None else ""
        if id in ids:
            line = Line(raw, fault=f"There is a fact {id} already.")
        elif id:
            ids.add(id)
        lines.append(line)
    # What follows the last end of a line is no line unless there is something.
    return lines if lines[-1].raw else lines[:-1]


def made(fact: Fact) -> Line:
    """The line of a new fact."""
    return _written(fact, {})


def revised(line: Line, fact: Fact) -> Line:
    """The line with another state of its fact; what is not ours in it stays."""
    return _written(fact, json.loads(line.raw))


def _written(fact: Fact, around: dict[str, Any]) -> Line:
    fields = {
        "id": fact.id,
        "category": fact.category,
        "text": fact.text,
        "created": iso(fact.created),
        "updated": iso(fact.updated),
    }
    # Half a character becomes its escape.
    raw = json.dumps({**around, **fields}, ensure_ascii=False).encode(errors="backslashreplace")
    return Line(raw, Fact(fact.id, fact.category, fact.text, *_times(fields)))


def _line(raw: bytes) -> Line:
    if not raw.strip():
        return Line(raw)
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return Line(raw, fault="The line is not JSON.")
    if not isinstance(fields, dict):
        return Line(raw, fault="The line is not a JSON object.")
    id, text = fields.get("id"), fields.get("text")
    category = fields.get("category", GENERAL)
    if not isinstance(id, str) or not id or len(id) > 100:
        return Line(raw, fault="The fact has no id: text of at most 100 characters.")
    if not isinstance(text, str) or not text.strip():
        return Line(raw, fault="The fact has no text.")
    if not isinstance(category, str) or len(category) > 200:
        return Line(raw, fault="The category is not a short text.")
    try:
        f"{id}{text}{category}".encode()
    except UnicodeEncodeError:
        return Line(raw, fault="The line holds half a character.")
    category = " ".join(category.split()).casefold() or GENERAL
    return Line(raw, Fact(id, category, text.strip(), *_times(fields)))


def _times(fields: dict[str, Any]) -> tuple[float, float]:
    created, updated = (seconds_of(fields.get(key)) for key in ("created", "updated"))
    return created or updated, updated or created
