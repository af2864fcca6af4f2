"""A table of separated values, a page at a time, so that a long one is quick."""

from __future__ import annotations

import csv
import io
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from web.harness.builtin.chat_files import OpenFile

PAGE_ROWS = 200
MAX_COLUMNS = 60
MAX_CELL_CHARS = 500
MAX_ROW_CHARS = 1_000_000
"""A row is read whole before it is cut; what has longer ones is shown as text."""
MAX_BYTES = 64 * 1024 * 1024
"""Of the file, from its start: so much is read, some second of work."""

_HEAD_CHARS = 4096
_REMEMBERED = 64

_counts: OrderedDict[str, int] = OrderedDict()
"""How many rows a content has, by its digest."""


@dataclass(frozen=True, slots=True)
class Table:
    """One page of a table: `rows` are numbered from `first`, 1 being the one after the heading.

    `count` is how many rows there are in all, `more_columns` how many each page leaves out. `cut`
    says that the file is too large to be read to its end.
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first: int
    count: int
    page: int
    pages: int
    more_columns: int = 0
    cut: bool = False


class _Descriptor(io.RawIOBase):
    """An open file from its start to a limit, for what reads line by line."""

    def __init__(self, file: OpenFile, limit: int) -> None:
        self._file = file
        self._at = 0
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        size = min(len(view), self._limit - self._at)
        data = self._file.read_now(self._at, size) if size > 0 else b""
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


def read_table(file: OpenFile, page: int) -> Table | None:
    """A page of the table, counted from 1; None for what is no table. Blocks."""
    known = _counts.get(file.sha256)
    page = max(1, page)
    if known is not None:
        page = min(page, _pages(known))
    first = (page - 1) * PAGE_ROWS
    try:
        records = _records(file)
        heading = next(records, None)
        if heading is None:
            return None
        rows = list(islice(records, first, first + PAGE_ROWS))
        count = known
        if count is None:
            count = first + len(rows) if rows else 0
            count += sum(1 for _ in records)
    except (csv.Error, UnicodeDecodeError):
        return None
    if not rows and page > 1:
        # Beyond the end, where nobody knew yet how many there are: count, and show the last.
        _remember(file.sha256, sum(1 for _ in islice(_records(file), 1, None)))
        return read_table(file, page)
    _remember(file.sha256, count)
    widest = max(len(heading), *(len(row) for row in rows)) if rows else len(heading)
    return Table(
        heading=_cells(heading),
        rows=tuple(map(_cells, rows)),
        first=first + 1,
        count=count,
        page=page,
        pages=_pages(count),
        more_columns=max(0, widest - MAX_COLUMNS),
        cut=file.size > MAX_BYTES,
    )


def _records(file: OpenFile) -> Iterator[list[str]]:
    """The rows that are not empty, the heading first. Raises csv.Error for what is no table."""
    raw = io.BufferedReader(_Descriptor(file, MAX_BYTES), 256 * 1024)
    text = io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="")
    head = file.read_now(0, _HEAD_CHARS).decode("utf-8", "replace")
    length = 0

    def lines() -> Iterator[str]:
        nonlocal length
        while line := text.readline(MAX_ROW_CHARS):
            length += len(line)
            if length >= MAX_ROW_CHARS:
                raise csv.Error("A row is too long.")
            yield line

    for row in csv.reader(lines(), delimiter=_delimiter(head)):
        length = 0
        if row:
            yield row


def _delimiter(head: str) -> str:
    """What stands most often in the first line, outside of quotes."""
    line = "".join(head.partition("\n")[0].split('"')[::2])
    return max(",;\t|", key=line.count)


def _cells(row: list[str]) -> tuple[str, ...]:
    return tuple(
        cell if len(cell) <= MAX_CELL_CHARS else f"{cell[:MAX_CELL_CHARS]}…"
        for cell in row[:MAX_COLUMNS]
    )


def _pages(count: int) -> int:
    return max(1, -(-count // PAGE_ROWS))


def _remember(sha256: str, count: int) -> None:
    if not sha256:
        return
    _counts[sha256] = count
    while len(_counts) > _REMEMBERED:
        _counts.popitem(last=False)
