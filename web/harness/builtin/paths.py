"""Relative paths as a model writes them, refused where they could mean something else.

A name that is accepted means the same file on Linux, macOS and Windows, in a zip and in an
address, and looks like what it is.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from web.harness.tools.words import shown
from web.harness.values.errors import ToolError

MAX_PATH_CHARS = 1024
MAX_NAME_BYTES = 200
"""Of one name in UTF-8. File systems take 255; the rest is room for what is put around it."""
MAX_DEPTH = 16

TEMPORARY_PREFIX = ".~harness-"
"""Files under way are called so; no path may be."""

RESERVED_FOLDER = ".harness"
"""What is kept about a folder's files lies in it, in a folder of this name; no path leads there."""

_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)
_JOINERS = "\u200c\u200d"
_SHORT_RESERVED = re.compile(r"(?:harnes|ha[0-9a-f]{4})~[0-9]+")
"""The reserved name as FAT shortens it: such a disk finds a folder by either."""


def parse_path(text: str) -> tuple[str, ...]:
    """The names of a relative path, from the outermost folder to the file, in Unicode's NFC.

    A leading `./` is dropped. Raises ToolError that says what is wrong with the path.
    """
    if len(text) > MAX_PATH_CHARS:
        raise ToolError(f"The path is longer than {MAX_PATH_CHARS:,} characters.")
    names = unicodedata.normalize("NFC", text).removeprefix("./").split("/")
    fault = fault_of(text)
    if fault:
        raise ToolError(
            f"The path {shown(text)} is refused: {fault}. "
            "Write a path relative to the chat's folder, such as notes/plan.md."
        )
    return tuple(names)


def fault_of(text: str) -> str:
    """Why a path is refused, in words about it; '' for one that is not."""
    if len(text) > MAX_PATH_CHARS:
        return f"it is longer than {MAX_PATH_CHARS:,} characters"
    whole = unicodedata.normalize("NFC", text)
    fault = _fault_of_path(whole)
    names = whole.removeprefix("./").split("/")
    if not fault and len(names) > MAX_DEPTH:
        fault = f"it is deeper than {MAX_DEPTH} levels"
    for name in names:
        fault = fault or _fault_of_name(name)
    return fault


def _fault_of_path(text: str) -> str:
    if not text.strip():
        return "it is empty"
    if text.startswith("/"):
        return "it is absolute"
    if "\\" in text:
        return "it holds a backslash; folders are separated by /"
    if text.endswith("/"):
        return "it names a folder"
    return ""


@functools.lru_cache(maxsize=4096)
def _fault_of_name(name: str) -> str:
    """Why one name of a path is refused, or ''."""
    if not name:
        return "it holds an empty name"
    if unicodedata.normalize("NFKC", name) in (".", ".."):
        return f"it holds '{name}'"
    for character in name:
        fault = _fault_of_character(character)
        if fault:
            return fault
    if name != name.strip() or name.endswith("."):
        return "a name begins or ends with a space, or ends with a dot"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a name is longer than {MAX_NAME_BYTES} bytes"
    if _DEVICES.fullmatch(name):
        return f"'{name}' is the name of a device on Windows"
    if name.casefold().startswith(TEMPORARY_PREFIX):
        return f"names that begin with {TEMPORARY_PREFIX} are reserved"
    if _is_reserved(name):
        return f"'{RESERVED_FOLDER}' is reserved for what is kept about the files"
    return ""


@functools.lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """One spelling for all that some disk takes for the same name.

    Disks of macOS and Windows do not tell case apart, some keep another form of Unicode than they
    were given, and some pass over joiners and selectors of variants.
    """
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
    return "".join(character for character in plain if not _is_ignorable(character))


def _is_ignorable(character: str) -> bool:
    selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    filler = character in "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    mongolian = "\u180b" <= character <= "\u180f"
    return selector or filler or mongolian or unicodedata.category(character) == "Cf"


def _is_reserved(name: str) -> bool:
    # Look-alikes are the same name on no disk, but would deceive a person.
    plain = folded(unicodedata.normalize("NFKC", name))
    return plain == RESERVED_FOLDER or _SHORT_RESERVED.fullmatch(plain) is not None


def _fault_of_character(character: str) -> str:
    if character == ":":
        return "it holds a colon, which names a drive or a stream on some systems"
    if character == "\ufffd":
        return "it holds a replacement character"
    category = unicodedata.category(character)
    if category == "Cs":
        return "it is not valid Unicode"
    if category in ("Cc", "Zl", "Zp"):
        return "it holds a control character"
    # Joiners belong to the spelling of some languages; the other unseen ones only mislead.
    if category == "Cf" and character not in _JOINERS:
        return "it holds an invisible character"
    if set(unicodedata.normalize("NFKC", character)) & set("/\\:"):
        return "it holds a look-alike of / \\ or :"
    return ""
