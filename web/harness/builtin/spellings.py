"""Names as a folder spells them.

The same letters can be written in several forms of Unicode, and some disks and editors take another
one than this library, which uses NFC: `é` may be one character, or an `e` with an accent after it.
Such a file is found by its name in NFC.
"""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Sequence

from web.harness.tools.beneath import open_folder


def spellings(folder: int) -> dict[str, str]:
    """By its NFC, the name that stands for it in an open folder: NFC where that is there, else the
    first of the others."""
    found: dict[str, str] = {}
    # Opened anew: whoever is reading the folder right now shares the place with its descriptor.
    descriptor = open_folder(folder, ".")
    try:
        names = sorted(os.listdir(descriptor))
    finally:
        os.close(descriptor)
    for name in names:
        plain = unicodedata.normalize("NFC", name)
        if name == plain or plain not in found:
            found[plain] = name
    return found


def spelled(folder: int, name: str) -> str:
    """How an open folder spells a name in NFC; as it is where it is not there."""
    if name.isascii():
        return name
    with contextlib.suppress(OSError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return name
    return spellings(folder).get(name, name)


def spelled_way(folder: int, names: Sequence[str]) -> list[str]:
    """The same of the folders on a way that begins at an open one."""
    way: list[str] = []
    if all(name.isascii() for name in names):
        return list(names)
    descriptor = os.dup(folder)
    try:
        for name in names:
            way.append(spelled(descriptor, name))
            inner = open_folder(descriptor, way[-1])
            os.close(descriptor)
            descriptor = inner
    except OSError:
        # Whoever opens them finds out what is in the way; what is not there is made as it is named.
        way += names[len(way) :]
    finally:
        os.close(descriptor)
    return way
