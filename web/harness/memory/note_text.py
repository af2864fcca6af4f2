"""A note as it lies on disk: front matter with title, tags and times, and markdown below it.

---
title: Invoices
tags: [project, money]
created: 2026-01-02T03:04:05Z
updated: 2026-01-02T03:04:05Z
---

What it says.

A person may write such a file, leave fields out, and add others, which stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from web.harness.memory.arguments import as_text
from web.harness.memory.limits import MAX_TAG_CHARS, MAX_TAGS, MAX_TITLE_CHARS
from web.harness.memory.times import iso, seconds_of
from web.harness.tools.front_matter import FrontMatterFault, has_front_matter, read_front_matter
from web.harness.tools.words import clean, shorten
from web.harness.values.errors import LimitExceeded, MemoryRefused
from web.harness.values.json_form import kind_of

_BOUNDARY = re.compile(r"^-{3,}\s*$", re.MULTILINE)
_HEADING = re.compile(r"\A\s*#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)

# Ours, read without a YAML parser, which would take thirty times as long: thousands are read at
# the start. Anything else goes to the parser.
_PLAIN = r"[^\W\d_](?:[\w .,()/'+-]*[\w.)'+])?"
_PLAIN_TAG = r"[^\W_](?:[\w-]*[^\W_])?"
_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_OURS = re.compile(
    rf"---\ntitle: ({_PLAIN}|{_QUOTED})\ntags: \[((?:{_PLAIN_TAG}(?:, {_PLAIN_TAG})*)?)\]\n"
    r"created: ([\d:TZ-]+)\nupdated: ([\d:TZ-]+)\n---\n"
)
_IS_PLAIN, _IS_PLAIN_TAG = re.compile(_PLAIN), re.compile(_PLAIN_TAG)
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)")
_WHITE = re.compile(r"\s+")

# What YAML takes in quotes only when it is written as a number.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class NoteText:
    """What a file says. Times are in seconds since 1970, 0 where it does not tell."""

    title: str
    tags: tuple[str, ...]
    content: str
    created: float = 0.0
    updated: float = 0.0


def parse(text: str, name: str) -> NoteText:
    """Reads a file's text; `name` stands for a title where it has none, and no heading either.

    Raises FrontMatterFault, in one line.
    """
    ours = _OURS.match(text)
    if ours is not None and (note := _own(ours, text)) is not None:
        return note
    if not has_front_matter(text):
        content = _content(text)
        return NoteText(_heading(content) or name, (), content)
    fields, _ = read_front_matter(text)
    content = _content(_BOUNDARY.split(text, 2)[2])
    given = fields.get("title", "")
    if not isinstance(given, str):
        raise FrontMatterFault("The title in the front matter must be text.")
    title = shorten(_one_line(given), MAX_TITLE_CHARS) or _heading(content) or name
    times = (seconds_of(fields.get(key, "")) for key in ("created", "updated"))
    return NoteText(title, _tags_of(fields.get("tags", "")), content, *times)


def _own(ours: re.Match[str], text: str) -> NoteText | None:
    """A note in our own form; None where a hand has put into it what the parser has to judge."""
    title, tags, created, updated = ours.groups()
    if title.startswith('"'):
        try:
            title = _one_line(json.loads(title))
        except ValueError:
            return None
    if not 0 < len(title) <= MAX_TITLE_CHARS:
        return None
    content = _content(text[ours.end() :])
    kept = _tags_of(tags) if tags else ()
    return NoteText(title, kept, content, seconds_of(created), seconds_of(updated))


def render(note: NoteText) -> str:
    """The text of a new file."""
    return f"---\n{_fields(note)}---\n\n{note.content}\n"


def revise(text: str, note: NoteText) -> str:
    """The text with what the note says; fields and comments that are not ours stay as they are."""
    if _OURS.match(text) or not has_front_matter(text):
        return render(note)
    kept: list[str] = []
    ours = False
    for line in _BOUNDARY.split(text, 2)[1].strip("\n").split("\n"):
        key = _KEY.match(line)
        if key is not None:
            ours = key[1] in ("title", "tags", "created", "updated")
        elif line.startswith("#"):
            ours = False
        if not ours:
            kept.append(f"{line}\n")
    return f"---\n{_fields(note)}{''.join(kept)}---\n\n{note.content}\n"


def checked_title(text: str) -> str:
    """A title on one line. Raises MemoryRefused and LimitExceeded."""
    title = _one_line(as_text(text, "The title"))
    if not title:
        raise MemoryRefused("A note needs a title.")
    if len(title) > MAX_TITLE_CHARS:
        raise LimitExceeded(
            f"The title has {len(title):,} characters; at most {MAX_TITLE_CHARS} are kept.",
            code="too_long",
        )
    return title


def checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags in the form they are kept: `[Two Words, #x]` as `two-words` and `x`, each once.

    Raises MemoryRefused and LimitExceeded.
    """
    if isinstance(tags, str):
        tags = tags.split(",")
    if not isinstance(tags, Sequence) or isinstance(tags, bytes):
        raise MemoryRefused(f"The tags are {kind_of(tags)} and have to be a list of words.")
    words = (
        re.sub(r"[^\w]+", "-", clean(as_text(tag, "A tag")).casefold()).strip("-_") for tag in tags
    )
    found = tuple(dict.fromkeys(word for word in words if word))
    if len(found) > MAX_TAGS:
        raise LimitExceeded(
            f"A note has at most {MAX_TAGS} tags, not {len(found)}.", code="too_long"
        )
    for tag in found:
        if len(tag) > MAX_TAG_CHARS:
            raise LimitExceeded(
                f"A tag has at most {MAX_TAG_CHARS} characters, not {len(tag):,} as {tag[:20]}….",
                code="too_long",
            )
    return found


def checked_content(text: str, limit: int) -> str:
    """Content without empty lines around it. Raises MemoryRefused and LimitExceeded."""
    content = _content(clean(as_text(text, "The content")))
    if not content.strip():
        raise MemoryRefused("A note needs a text.")
    if len(content) > limit:
        raise LimitExceeded(
            f"The note has {len(content):,} characters; at most {limit:,} are kept.",
            hint="Nothing was saved. Make several notes of it, or put it in a file.",
            code="too_long",
        )
    return content


def _fields(note: NoteText) -> str:
    title = note.title if _IS_PLAIN.fullmatch(note.title) else _quoted(note.title)
    tags = (tag if _IS_PLAIN_TAG.fullmatch(tag) else _quoted(tag) for tag in note.tags)
    times = f"created: {iso(note.created)}\nupdated: {iso(note.updated)}\n"
    return f"title: {title}\ntags: [{', '.join(tags)}]\n{times}"


def _quoted(text: str) -> str:
    """A JSON string, which is one of YAML too once all that it takes as a number is one."""
    written = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _content(text: str) -> str:
    """Without empty lines at the beginning, and without white space at the end."""
    return re.sub(r"\A(?:[ \t]*\r?\n)+", "", text.replace("\r\n", "\n")).rstrip()


def _heading(content: str) -> str:
    found = _HEADING.match(content)
    return shorten(_one_line(found[1]), MAX_TITLE_CHARS) if found else ""


def _one_line(text: str) -> str:
    return _WHITE.sub(" ", "".join(" " if ord(c) < 32 else c for c in clean(text))).strip()


def _tags_of(given: Any) -> tuple[str, ...]:
    tags = given.split(",") if isinstance(given, str) else given
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise FrontMatterFault("The tags in the front matter must be a list of words.")
    try:
        return checked_tags(tags)
    except LimitExceeded as error:
        raise FrontMatterFault(error.message) from None
