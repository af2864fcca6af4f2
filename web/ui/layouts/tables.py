"""A table of separated values, a page at a time, so that a long one is quick.

The first look reads the file once and keeps an index of it: where some rows begin. Further pages
are read from the nearest of these places.
"""

from __future__ import annotations

import csv
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from web.ui.layouts.layouts import Readable

PAGE_ROWS = 200
MAX_COLUMNS = 60
MAX_CELL_CHARS = 500
MAX_ROW_BYTES = 1_000_000
"""A row is read whole before it is cut; what has longer ones is shown as text."""
MAX_BYTES = 64 * 1024 * 1024
"""Of the file, from its start: so much is read."""
MAX_SECONDS = 3.5
"""So long is read for the index; the rest of the file is then not shown."""

_BLOCK_BYTES = 64 * 1024
"""A place is remembered for each block, so some thousand at most."""
_HEAD_BYTES = 4096
_REMEMBERED = 32
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Table:
    """One page of a table: `rows` are numbered from `first`, 1 being the one after the heading.

    `count` is how many rows there are in all, `more_columns` how many each page leaves out. `cut`
    says that the file is too large to be read to its end.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    first: int
    count: int
    page: int
    pages: int
    more_columns: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """Where rows begin: at byte `offsets[n]` one that `rows[n]` others stand before.

    The heading counts as the first row; empty lines count as none. The last entry is the end.
    `heading` is cut as it is shown, `width` is how many columns it has. The places are those of
    the text in UTF-8; `encoding` is how that of the file is called, '' for the same.
    """

    heading: Sequence[str]
    width: int
    delimiter: str
    rows: Sequence[int]
    offsets: Sequence[int]
    cut: bool
    encoding: str = ""

    def page(self, page: int) -> tuple[int, slice]:
        """The page nearest to `page`, counted from 1, and the places that its rows are between."""
        page = min(max(1, page), _pages(self.rows[-1] - 1))
        first = 1 + (page - 1) * PAGE_ROWS
        start = bisect_right(self.rows, first) - 1
        stop = bisect_left(self.rows, first + PAGE_ROWS)
        return page, slice(max(0, start), stop + 1)

    def span(self, page: int) -> int:
        """How many bytes are read for a page."""
        offsets = self.offsets[self.page(page)[1]]
        return offsets[-1] - offsets[0]


class Indexes:
    """The indexes of the files that were last looked at, by their digests."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Index] = OrderedDict()

    def get(self, sha256: str) -> Index | None:
        index = self._kept.get(sha256)
        if index is not None:
            self._kept.move_to_end(sha256)
        return index

    def keep(self, sha256: str, index: Index) -> None:
        if not sha256:
            return
        self._kept[sha256] = index
        while len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)


def read_index(file: Readable, clock: Callable[[], float] = time.monotonic) -> Index | None:
    """The index of a table; None for what is no table. Blocks, for `MAX_SECONDS` at most."""
    until = clock() + MAX_SECONDS
    head = file.read_now(0, _HEAD_BYTES)
    delimiter = _delimiter(head.removeprefix(_MARK).decode("utf-8", "replace"))
    rows, offsets = [0], [len(_MARK) if head.startswith(_MARK) else 0]
    try:
        while offsets[-1] < min(file.size, MAX_BYTES) and clock() < until:
            count, size = _block(file, offsets[-1], delimiter)
            if not size:
                break
            rows.append(rows[-1] + count)
            offsets.append(offsets[-1] + size)
        # Empty lines before it may be many.
        start = bisect_right(rows, 0) - 1
        heading = next(_read(file, offsets[start : start + 2], delimiter), None)
    except csv.Error:
        return None
    if heading is None:
        return None
    cut = offsets[-1] < file.size
    return Index(_cells(heading), len(heading), delimiter, rows, offsets, cut)


def read_page(file: Readable, index: Index, page: int) -> Table | None:
    """A page of the table, counted from 1; None where the file is not what it was. Blocks."""
    page, places = index.page(page)
    first = (page - 1) * PAGE_ROWS
    found = _read(file, index.offsets[places], index.delimiter)
    start = 1 + first - index.rows[places.start]
    rows, widest = [], index.width
    try:
        for row in islice(found, start, start + PAGE_ROWS):
            rows.append(_cells(row))
            widest = max(widest, len(row))
    except csv.Error:
        return None
    count = index.rows[-1] - 1
    return Table(
        heading=index.heading,
        rows=rows,
        first=first + 1,
        count=count,
        page=page,
        pages=_pages(count),
        more_columns=max(0, widest - MAX_COLUMNS),
        cut=index.cut,
    )


def _block(file: Readable, start: int, delimiter: str) -> tuple[int, int]:
    """How many whole rows there are from `start` on, in about a block, and in how many bytes.

    No bytes at the limit of what is read. Raises csv.Error for what is no table.
    """
    size = _BLOCK_BYTES
    while True:
        size = min(size, MAX_BYTES - start)
        data = file.read_now(start, size)
        ends = len(data) < size or start + size >= file.size
        count, used = _whole_rows(data, ends, delimiter)
        if used or start + size >= MAX_BYTES:
            return count, used
        if ends:
            return 0, 0
        if size > MAX_ROW_BYTES:
            raise csv.Error("A row is too long.")
        size *= 2


def _whole_rows(data: bytes, ends: bool, delimiter: str) -> tuple[int, int]:
    """How many rows are whole in `data`, and how many bytes; `ends`: nothing follows."""
    if not ends:
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
    if b'"' not in data and len(data) <= csv.field_size_limit():
        # Without quotes a line is a row. This is ten times as quick.
        plain = data.splitlines()
        return len(plain) - plain.count(b""), len(data)
    lines = data.splitlines(keepends=True)
    # A further line shows where the last row ends: what is open takes it in.
    more = () if ends else ("x",)
    texts = [*map(_decoded, lines), *more]
    found = list(csv.reader(texts, delimiter=delimiter))
    if found and found[-1] == ["x"] and more:
        return len(found) - 1 - found.count([]), len(data)
    reader = csv.reader(texts, delimiter=delimiter)
    count = used = 0
    for row in reader:
        if reader.line_num > len(lines):
            break
        used = reader.line_num
        count += bool(row)
    size = sum(map(len, lines[:used]))
    if size > MAX_ROW_BYTES and count == 1:
        raise csv.Error("A row is too long.")
    return count, size


def _read(file: Readable, offsets: Sequence[int], delimiter: str) -> Iterator[list[str]]:
    """The rows between some places, without empty ones."""
    for start, stop in pairwise(offsets):
        lines = file.read_now(start, stop - start).splitlines(keepends=True)
        yield from filter(None, csv.reader(map(_decoded, lines), delimiter=delimiter))


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace")


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
