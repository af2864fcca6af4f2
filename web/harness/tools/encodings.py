"""Text by its bytes, also where it is not in UTF-8: as spreadsheets and older programs write it.

A mark at the start says it for sure. Without one, bytes that are no UTF-8 are taken for
Windows-1252 (of which Latin-1 is a part) where what comes out looks like a language that is written
so. Anything else is left alone: a wrong guess would change what somebody has said.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

MAX_BYTES = 8_000_000
"""Of a text that is not in UTF-8; it is held in memory as a whole."""

HOW_TO_MEND = "save it as UTF-8 and put it in again"

# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_MEANS_NOTHING = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""In Windows-1252."""
_PLAIN = re.compile(rb"[0-9A-Za-z]")
_MARKED = re.compile(rb"[\x80-\xff]")
_LETTER = re.compile(rb"[\xc0-\xff]")
_MANY_LETTERS = re.compile(rb"[\xc0-\xff]{4,}")
_OF_UTF8 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")


class Decoded(NamedTuple):
    """A text, and how a person calls its encoding, '' for UTF-8."""

    text: str
    encoding: str


def decoded(data: bytes) -> Decoded | None:
    """The text that some data is, without its mark; None for none, and where nobody can tell."""
    encoding, name = "utf-8-sig", ""
    for mark, codec, called in _MARKS:
        if data.startswith(mark):
            encoding, name = codec, called
            break
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if name or not _is_western(data):
            return None
        text, name = data.decode("cp1252"), "Windows-1252"
    return None if "\0" in text else Decoded(text, name)


def may_be_text(head: bytes) -> bool:
    """Whether data that begins so could be text in some encoding, known or not."""
    marked = any(head.startswith(mark) for mark, _, _ in _MARKS)
    return marked or _CONTROL.search(head) is None


def _is_western(data: bytes) -> bool:
    """Whether this reads well as Windows-1252.

    In languages written so most letters are plain ones, and hardly four others follow each other,
    as they do in Cyrillic, Greek or Chinese. UTF-8 with a fault in it has pairs that mean nothing.
    """
    marked = len(_MARKED.findall(data))
    if _CONTROL.search(data) or _MEANS_NOTHING.search(data) or marked > len(_PLAIN.findall(data)):
        return False
    letters = len(_LETTER.findall(data))
    in_rows = sum(map(len, _MANY_LETTERS.findall(data)))
    return 2 * in_rows <= letters and 4 * len(_OF_UTF8.findall(data)) < marked


@contextlib.contextmanager
def utf8_copy(descriptor: int) -> Iterator[tuple[int, int, str] | None]:
    """A copy in UTF-8 of an open file that is text in another encoding: its descriptor, its size
    in bytes, and how the encoding is called.

    None for a file that is in UTF-8 already, is no text, or is larger than `MAX_BYTES`. Blocks.
    """
    size = os.fstat(descriptor).st_size
    found = decoded(_read(descriptor, size)) if size <= MAX_BYTES else None
    if found is None or not found.encoding:
        yield None
        return
    with tempfile.TemporaryFile(buffering=0) as copy:
        content = memoryview(found.text.encode())
        size = len(content)
        while content:
            content = content[copy.write(content) :]
        copy.seek(0)
        yield copy.fileno(), size, found.encoding


@contextlib.contextmanager
def marked_copy(descriptor: int) -> Iterator[int]:
    """The descriptor of a copy in UTF-8 where the mark of an open file says that it is text in
    another encoding, else its own. Blocks."""
    head = os.pread(descriptor, 4, 0)
    if not any(head.startswith(mark) for mark, _, _ in _MARKS):
        yield descriptor
        return
    with utf8_copy(descriptor) as copy:
        yield descriptor if copy is None else copy[0]


def _read(descriptor: int, size: int) -> bytes:
    pieces, place = [], 0
    while place < size and (piece := os.pread(descriptor, size - place, place)):
        pieces.append(piece)
        place += len(piece)
    return b"".join(pieces)
