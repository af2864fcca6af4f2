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
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

MAX_BYTES = 8_000_000
"""Of a text that is not in UTF-8."""

HOW_TO_MEND = "save it as UTF-8 and put it in again"

# The mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")

_PIECE_BYTES = 64 * 1024
"""So much is judged and decoded at a time: between two pieces other threads have their turn."""
_ONE_AT_A_TIME = threading.Lock()
"""Decoding takes all of a core: many texts at once would leave nothing to the event loop."""

_Pieces = Callable[[], Iterator[bytes]]


class Decoded(NamedTuple):
    """A text, and how a person calls its encoding, '' for UTF-8."""

    text: str
    encoding: str


def decoded(data: bytes) -> Decoded | None:
    """The text that some data is, without its mark; None for none, and where nobody can tell."""

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(data), _PIECE_BYTES):
            yield data[start : start + _PIECE_BYTES]

    with _ONE_AT_A_TIME, contextlib.suppress(ValueError):
        found = _encoding(pieces)
        if found is not None:
            codec, name = found
            return Decoded("".join(_texts(pieces(), codec)), name)
    return None


def may_be_text(head: bytes) -> bool:
    """Whether data that begins so could be text in some encoding, known or not."""
    marked = any(head.startswith(mark) for mark, _, _ in _MARKS)
    return marked or _CONTROL.search(head) is None


@contextlib.contextmanager
def utf8_copy(descriptor: int, most: int = MAX_BYTES) -> Iterator[tuple[int, int, str] | None]:
    """A copy in UTF-8 of an open file that is text in another encoding: its descriptor, its size
    in bytes, and how the encoding is called.

    The copy ends after `most` bytes of the file. None for a file that is in UTF-8 already, is no
    text, or is larger than `MAX_BYTES`. Blocks.
    """
    size = os.fstat(descriptor).st_size
    if size > MAX_BYTES:
        yield None
        return
    with tempfile.TemporaryFile() as copy:
        with _ONE_AT_A_TIME:
            name = _copied(descriptor, min(size, most), copy, ends=size <= most)
        length = copy.tell()
        # It is read from its start, by whoever gets it.
        copy.seek(0)
        yield (copy.fileno(), length, name) if name else None


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


def _copied(descriptor: int, size: int, copy: BinaryIO, *, ends: bool) -> str:
    """Writes the copy; returns how the encoding is called, '' where there is to be none."""

    def pieces() -> Iterator[bytes]:
        place = 0
        while piece := os.pread(descriptor, min(_PIECE_BYTES, size - place), place):
            yield piece
            place += len(piece)

    with contextlib.suppress(ValueError):
        codec, name = _encoding(pieces, ends=ends) or ("", "")
        for text in _texts(pieces(), codec, ends=ends) if name else ():
            copy.write(text.encode())
        return name
    return ""


def _encoding(pieces: _Pieces, *, ends: bool = True) -> tuple[str, str] | None:
    """The codec of a text, and how it is called, '' for UTF-8; None where nobody can tell.

    Unless it `ends` with the last piece, a character may be cut there.
    """
    head = next(pieces(), b"")
    for mark, codec, name in _MARKS:
        if head.startswith(mark):
            return codec, name
    try:
        for _ in _texts(pieces(), "utf-8-sig", ends=ends):
            pass
    except UnicodeDecodeError:
        return ("cp1252", "Windows-1252") if _is_western(pieces()) else None
    return "utf-8-sig", ""


def _texts(pieces: Iterable[bytes], codec: str, *, ends: bool = True) -> Iterator[str]:
    """The pieces as text. Raises ValueError for what is none in this encoding, or holds a NUL."""
    decoder = codecs.getincrementaldecoder(codec)()
    for piece in pieces:
        text = decoder.decode(piece)
        if "\0" in text:
            raise ValueError("A text holds no NUL.")
        yield text
    yield decoder.decode(b"", final=ends)


def _kind(byte: int) -> str:
    """What a byte is in Windows-1252: `-` for what no text has, `p` for a plain letter or digit,
    `L` for another letter, `l` for one that begins no character of UTF-8, `c` for what may go on
    with one, a space for all else."""
    if _CONTROL.match(bytes([byte])) or byte in b"\x81\x8d\x8f\x90\x9d":
        return "-"
    if byte < 0x80:
        return "p" if chr(byte).isalnum() else " "
    if byte < 0xC0:
        return "c"
    return "L" if 0xC2 <= byte <= 0xF4 else "l"


_KINDS = "".join(map(_kind, range(256))).encode()
_LETTERS = bytes(ord("L") if byte in b"Ll" else ord(" ") for byte in range(256))
"""Of kinds: which are letters that are not plain."""


def _is_western(pieces: Iterable[bytes]) -> bool:
    """Whether this reads well as Windows-1252.

    In languages written so most letters are plain ones, and hardly four others follow each other,
    as they do in Cyrillic, Greek or Chinese. UTF-8 with a fault in it has pairs that mean nothing.
    All is counted without a list of what is found, which could have millions of entries.
    """
    plain = letters = marked = in_rows = of_utf8 = 0
    for piece in pieces:
        kinds = piece.translate(_KINDS)
        if b"-" in kinds:
            return False
        plain += kinds.count(b"p")
        here = kinds.count(b"L") + kinds.count(b"l")
        marked += here + kinds.count(b"c")
        of_utf8 += kinds.count(b"Lc")
        letters += here
        in_rows += here - _in_short_rows(kinds) if here else 0
    return marked <= plain and 2 * in_rows <= letters and 4 * of_utf8 < marked


def _in_short_rows(kinds: bytes) -> int:
    """How many letters stand in rows of less than four."""
    # Each row has two spaces of its own, so that none is missed beside another.
    spaced = b" " + kinds.translate(_LETTERS).replace(b" ", b"  ") + b" "
    return sum(length * spaced.count(b" " + b"L" * length + b" ") for length in (1, 2, 3))
