"""Names of skills, and of the files in them.

A name that is accepted means the same file on every system and looks like what it is. Only letters,
digits and a few marks are taken, which leaves out links' and drives' ways of writing paths, control
and unseen characters, and look-alikes of a slash all at once.
"""

from __future__ import annotations

import re
import unicodedata

from web.harness.tools.words import shown
from web.harness.values.errors import SkillRefused

SKILL_FILE = "SKILL.md"

MAX_PATH_CHARS = 400
MAX_FILE_NAME_BYTES = 150
MAX_DEPTH = 8

LITTER = frozenset({"__macosx", "__pycache__", "thumbs.db", "desktop.ini"})
"""What systems and tools put beside the files of others, casefolded; no part of a skill. Installing
a package compiles the scripts of its skills, say."""

_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MARKS = frozenset(" ._-+,=@()[]{}!&%#'~$")
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)


def is_skill_name(text: str) -> bool:
    """Whether it is made of lower-case letters and digits, in words joined by single hyphens."""
    return _SKILL_NAME.fullmatch(text) is not None


def parse_file_path(text: str) -> tuple[str, ...]:
    """The names of a path relative to a skill's folder, in Unicode's NFC.

    A leading `./` is dropped. Raises SkillRefused that says what is wrong.
    """
    names = tuple(unicodedata.normalize("NFC", text).removeprefix("./").split("/"))
    fault = ""
    if len(text) > MAX_PATH_CHARS:
        fault = f"it is longer than {MAX_PATH_CHARS} characters"
    elif text.startswith("/"):
        fault = "it is absolute"
    elif len(names) > MAX_DEPTH:
        fault = f"it is deeper than {MAX_DEPTH} folders"
    for name in names:
        fault = fault or fault_of_name(name)
    if fault:
        raise SkillRefused(f"The path {shown(text)} is refused: {fault}.")
    return names


def fault_of_name(name: str) -> str:
    """Why a file or folder of a skill may not be called so, or ''."""
    if not name:
        return "it holds an empty name"
    if name in (".", ".."):
        return f"it holds '{name}'"
    for character in name:
        if not _is_plain(character):
            return f"it holds {_shown_character(character)}"
    if name.startswith("."):
        return "names that begin with a dot are reserved"
    if name != name.strip() or name.endswith("."):
        return "a name begins or ends with a space, or ends with a dot"
    if unicodedata.normalize("NFC", name) != name:
        return "a name is not in Unicode's NFC"
    if len(name.encode()) > MAX_FILE_NAME_BYTES:
        return f"a name is longer than {MAX_FILE_NAME_BYTES} bytes"
    if _DEVICES.fullmatch(name):
        return f"'{name}' is the name of a device on Windows"
    return ""


def _is_plain(character: str) -> bool:
    return character in _MARKS or unicodedata.category(character)[0] in "LMN"


def _shown_character(character: str) -> str:
    code = f"U+{ord(character):04X}"
    seen = character.isprintable() and unicodedata.category(character) != "Cs"
    return f"'{character}' ({code})" if seen else f"the unseen character {code}"
