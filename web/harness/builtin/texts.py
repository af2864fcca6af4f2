"""Text files: the lines of one, and an exact replacement in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from web.harness.tools.beneath import CHUNK_BYTES
from web.harness.tools.words import shown
from web.harness.values.errors import ToolError

MAX_TEXT_BYTES = 4 * 1024 * 1024
"""Of a text that is edited or compared as a whole."""

MAX_LINE_BYTES = 64 * 1024
"""A longer line is taken in pieces."""

_NAMED_LINES = 10
_LINES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Extract:
    """Some lines of a text file.

    `first` and `last` number them from 1; `last` is below `first` where there are none. `total` is
    how many lines the file has. `cut` tells that the last line goes on.
    """

    text: str
    first: int
    last: int
    total: int
    cut: bool = False

    @property
    def whole(self) -> bool:
        return self.first == 1 and self.last == self.total and not self.cut


def text_of(data: bytes) -> str | None:
    """The text, or None for what is not UTF-8 or holds a NUL, which no text does."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def extract(descriptor: int, start: int, count: int, max_bytes: int) -> Extract | None:
    """Lines of an open file from `start` on, at most `count` and so many bytes; None for no text.

    The rest of the file is only counted, so that a large one takes little memory.
    """
    kept: list[bytes] = []
    number, last, room, ends, zero = 1, start - 1, max_bytes, True, False
    with _buffered(descriptor) as file:
        while number < start + count and room > 0:
            piece = file.readline(min(MAX_LINE_BYTES, room) if number >= start else MAX_LINE_BYTES)
            if not piece:
                break
            ends, zero = piece.endswith(b"\n"), zero or b"\0" in piece
            if number >= start:
                kept.append(piece)
                last, room = number, room - len(piece)
            number += ends
        rest = _Rest(file, not ends)
    data = b"".join(kept)
    cut = not ends and rest.size > 0 and last == number
    text = text_of(_whole_characters(data) if cut else data)
    if text is None or zero or rest.zero:
        return None
    return Extract(text, start, last, number - 1 + rest.breaks + rest.open_end, cut)


class _Rest:
    """What is left of a file: its size, its line breaks, whether text follows the last of them."""

    def __init__(self, file: BinaryIO, open_end: bool) -> None:
        self.size, self.breaks, self.open_end, self.zero = 0, 0, open_end, False
        while chunk := file.read(CHUNK_BYTES):
            self.size += len(chunk)
            self.breaks += chunk.count(b"\n")
            self.open_end = not chunk.endswith(b"\n")
            self.zero = self.zero or b"\0" in chunk


def lines_of(descriptor: int) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of an open file; a very long one comes in pieces of the same number."""
    number = 1
    with _buffered(descriptor) as file:
        while piece := file.readline(MAX_LINE_BYTES):
            yield number, piece
            number += piece.endswith(b"\n")


def _buffered(descriptor: int) -> BinaryIO:
    return os.fdopen(os.dup(descriptor), "rb", buffering=CHUNK_BYTES)


def _whole_characters(data: bytes) -> bytes:
    """Without the first bytes of a character whose others are cut off."""
    for missing in range(1, 4):
        if data[-missing : -missing + 1 or None] and data[-missing] >= 0xC0:
            width = 2 + (data[-missing] >= 0xE0) + (data[-missing] >= 0xF0)
            return data[:-missing] if width > missing else data
    return data


def replaced(path: str, text: str, old: str, new: str, *, every: bool) -> str:
    """The text with `old` replaced by `new`; raises ToolError where that is not clear.

    It takes a time that grows with the text, up to a second: for use in a thread.
    """
    if not old:
        raise ToolError("The text to replace is empty.")
    if old == new:
        raise ToolError("The new text is the same as the old one, so nothing would change.")
    found = text.count(old)
    if not found:
        raise ToolError(f"The text to replace is not in {shown(path)}.{_near(text, old)}")
    if found > 1 and not every:
        lines = _lines_with(text, old)
        raise ToolError(
            f"The text to replace is {found:,} times in {shown(path)}, at {_in_words(lines)}. "
            "Give more of what is around the right one, or send all=true."
        )
    return text.replace(old, new)


def _lines_with(text: str, part: str) -> list[int]:
    """The numbers of the lines where `part` begins, as `replace` would find them."""
    numbers: list[int] = []
    number, at = 1, 0
    while len(numbers) <= _NAMED_LINES and (found := text.find(part, at)) >= 0:
        number += text.count("\n", at, found)
        numbers.append(number)
        number += part.count("\n")
        at = found + len(part)
    return numbers


def _near(text: str, old: str) -> str:
    """Where something much like it is, in words; '' where there is nothing."""
    if "\r\n" in text and "\r" not in old and old in text.replace("\r\n", "\n"):
        return " Its lines end with carriage return and line feed (\\r\\n): write them so."
    wanted = _plain(old.strip())
    first, _, _ = wanted.partition("\n")
    if not first:
        return ""
    # Texts and no lists of lines, so that each search is one pass however alike the lines are.
    lines = f"\n{_plain(text)}\n"
    alike = _whole_lines(lines, wanted)
    if alike:
        return f" But for white space it is at {_in_words(alike)}: give it exactly as it is there."
    starts = _whole_lines(lines, first)
    if starts:
        return f" Its first line is at {_in_words(starts)}, but goes on in another way."
    return " Read the file to see what it holds."


def _plain(text: str) -> str:
    """The text with one space in each line wherever that has white space, and none at its ends."""
    lines = (" ".join(line.split()) for line in lines_in(text))
    pieces: list[str] = []
    # Some at a time: to free a list of them all would stop everything else meanwhile.
    while some := list(islice(lines, _LINES_AT_ONCE)):
        pieces.append("\n".join(some))
    return "\n".join(pieces)


def _whole_lines(lines: str, wanted: str) -> list[int]:
    """The numbers of the lines at which `wanted` stands, as far as they are named."""
    numbers: list[int] = []
    number, before, at = 0, 0, -1
    while len(numbers) <= _NAMED_LINES and (at := lines.find(f"\n{wanted}\n", at + 1)) >= 0:
        number += lines.count("\n", before, at + 1)
        before = at + 1
        numbers.append(number)
    return numbers


def lines_in(text: str) -> Iterator[str]:
    """Lines without their breaks, one by one: all of them at once would take much memory. What
    follows a last break is a line too, if an empty one."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _in_words(numbers: list[int]) -> str:
    named = ", ".join(f"{number:,}" for number in numbers[:_NAMED_LINES])
    more = " and more" if len(numbers) > _NAMED_LINES else ""
    return f"line {named}" if len(numbers) == 1 else f"lines {named}{more}"
