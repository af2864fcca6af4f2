"""One skill: what its `SKILL.md` says, or what is wrong with it."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from web.harness.skills.front_matter import read_front_matter
from web.harness.skills.limits import (
    MAX_ALLOWED_TOOLS,
    MAX_COMPATIBILITY_CHARS,
    MAX_DESCRIPTION_CHARS,
    MAX_LICENSE_CHARS,
    MAX_METADATA,
    MAX_METADATA_CHARS,
    MAX_NAME_CHARS,
)
from web.harness.skills.names import is_skill_name
from web.harness.tools.words import shown
from web.harness.values.errors import SkillRefused

SkillOrigin = Literal["upload", "server", "sample"]
"""Put in by this person, kept by the server for all, or brought by the program."""

_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Skill:
    """What is listed of a skill. With a `fault`, one line, it cannot be used.

    `name` is also that of its folder; of a broken one it may be anything. `changed` is the time of
    its `SKILL.md` in seconds since 1970. `allowed_tools` are what its author would like; they
    permit nothing. Without `editable` its `SKILL.md` cannot be read, and so not mended from here.
    """

    name: str
    description: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    allowed_tools: tuple[str, ...] = ()
    fault: str = ""
    origin: SkillOrigin = "server"
    writable: bool = False
    changed: float = 0.0
    editable: bool = True


class SkillFile(NamedTuple):
    """A file beside `SKILL.md`: its path from the skill's folder, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill as it is read: `source` is the whole `SKILL.md`, of which `body` is the markdown.

    `sha256` is that of the source, for `edit` to know what was edited. `left_out` counts what lies
    in the folder and cannot be read: links, devices, hidden and oddly named files.
    """

    skill: Skill
    source: str
    body: str
    sha256: str
    files: tuple[SkillFile, ...] = ()
    left_out: int = 0


def decoded(content: bytes) -> str:
    """The text of a `SKILL.md`; raises SkillRefused for what is not text in UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SkillRefused(f"SKILL.md is not text in UTF-8 (line {line}).") from None
    if "\0" in text:
        raise SkillRefused("SKILL.md is not text: it holds a NUL.")
    return text


def read_skill(text: str, folder: str | None = None) -> tuple[Skill, str]:
    """The skill that a `SKILL.md` describes, and its body.

    `folder` is the name of its folder, which must be the skill's; None where it has none yet.
    Raises SkillRefused, in one line.
    """
    fields, body = read_front_matter(text)
    name = _text(fields, "name", MAX_NAME_CHARS, required=True)
    if not is_skill_name(name):
        raise SkillRefused(
            f"The name {shown(name)} is no name for a skill: use lower-case letters a-z, digits "
            "and single hyphens between them."
        )
    if folder is not None and name != folder:
        raise SkillRefused(f"The name {shown(name)} is not that of its folder, {shown(folder)}.")
    skill = Skill(
        name,
        _text(fields, "description", MAX_DESCRIPTION_CHARS, required=True),
        _text(fields, "license", MAX_LICENSE_CHARS),
        _text(fields, "compatibility", MAX_COMPATIBILITY_CHARS),
        _metadata(fields.get("metadata") or {}),
        _allowed_tools(fields.get("allowed-tools") or ""),
    )
    return skill, body


def one_line(text: str) -> str:
    """The text on one line, without characters that are not seen."""
    seen = (
        " " if category in ("Cc", "Zl", "Zp") else "" if category in ("Cf", "Cs", "Co") else char
        for char in text
        for category in (unicodedata.category(char) if char not in _JOINERS else "",)
    )
    return " ".join("".join(seen).split())


def _text(fields: dict[str, Any], name: str, limit: int, *, required: bool = False) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise SkillRefused(f"The field `{name}` must be text.")
    line = one_line(value)
    if required and not line:
        raise SkillRefused(f"The field `{name}` is missing or empty.")
    if len(line) > limit:
        raise SkillRefused(f"The field `{name}` is longer than {limit:,} characters.")
    return line


def _metadata(value: Any) -> tuple[tuple[str, str], ...]:
    """The entries as text; what is nested, as some skills have it, as JSON."""
    if not isinstance(value, dict):
        raise SkillRefused("The field `metadata` must be a mapping.")
    entries = []
    for key, entry in value.items():
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        entries.append((one_line(key), one_line(text)))
    longest = max((len(text) for entry in entries for text in entry), default=0)
    if len(entries) > MAX_METADATA or longest > MAX_METADATA_CHARS:
        raise SkillRefused(
            f"The field `metadata` has more than {MAX_METADATA} entries, "
            f"or one longer than {MAX_METADATA_CHARS:,} characters."
        )
    return tuple(entries)


def _allowed_tools(value: Any) -> tuple[str, ...]:
    """Names between spaces as the format has them; commas and a list are met as well."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        names = [one_line(item) for item in value]
    elif isinstance(value, str):
        names = one_line(value).replace(",", " ").split()
    else:
        raise SkillRefused("The field `allowed-tools` must be text.")
    if len(names) > MAX_ALLOWED_TOOLS:
        raise SkillRefused(f"The field `allowed-tools` names more than {MAX_ALLOWED_TOOLS} tools.")
    return tuple(names)
