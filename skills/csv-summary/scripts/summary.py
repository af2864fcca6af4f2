"""Describes the columns of a CSV file as a markdown table, reading it once from start to end."""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date

MAX_DISTINCT = 10_000
SAMPLE_CHARS = 16_384
MAX_CELL_CHARS = 40

PLAIN = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
)
COMMA = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?")


class Column:
    """What is known of one column after the rows that were read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.filled = 0
        self.counts: Counter[str] = Counter()
        self.too_many = False
        self.plain = Numbers(lambda text: float(text.replace(",", "")), PLAIN)
        self.comma = Numbers(lambda text: float(text.replace(".", "").replace(",", ".")), COMMA)
        self.dates: list[date] | None = []
        self.lengths: tuple[int, int] | None = None

    def add(self, value: str) -> None:
        value = value.strip()
        if not value:
            return
        self.filled += 1
        if value in self.counts or len(self.counts) < MAX_DISTINCT:
            self.counts[value] += 1
        else:
            self.too_many = True
        self.plain.add(value)
        self.comma.add(value)
        self._add_date(value)
        size = len(value)
        low, high = self.lengths or (size, size)
        self.lengths = (min(low, size), max(high, size))

    def _add_date(self, value: str) -> None:
        if self.dates is None:
            return
        try:
            day = date.fromisoformat(value)
        except ValueError:
            self.dates = None
            return
        self.dates = [min([*self.dates[:1], day]), max([*self.dates[-1:], day])]

    def cells(self, top: int) -> list[str]:
        """The row of this column in the table."""
        distinct = f"{len(self.counts):,}" + ("+" if self.too_many else "")
        head = [self.name, f"{self.filled:,}", distinct]
        numbers = next((kind for kind in (self.plain, self.comma) if kind.fits), None)
        if not self.filled:
            kind, low, high, mean = "empty", "", "", ""
        elif numbers is not None:
            kind, low, high = "number", figure(numbers.low), figure(numbers.high)
            mean = figure(numbers.total / self.filled)
        elif self.dates is not None:
            kind, low, high, mean = "date", str(self.dates[0]), str(self.dates[-1]), ""
        else:
            low, high = (
                f"{size:,} character{'' if size == 1 else 's'}" for size in self.lengths or (0, 0)
            )
            kind, mean = "text", ""
        frequent = ""
        if kind == "text" and not self.too_many:
            common = self.counts.most_common(top)
            frequent = ", ".join(f"{value} ({count:,})" for value, count in common if count > 1)
        return [head[0], kind, *head[1:], low, high, mean, frequent]


class Numbers:
    """Numbers of one way of writing; `fits` while every value was one."""

    def __init__(self, read: Callable[[str], float], pattern: re.Pattern[str]) -> None:
        self._read = read
        self._pattern = pattern
        self.fits = True
        self.low = float("inf")
        self.high = float("-inf")
        self.total = 0.0

    def add(self, value: str) -> None:
        if not self.fits:
            return
        if self._pattern.fullmatch(value) is None:
            self.fits = False
            return
        number = self._read(value)
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.total += number


def figure(number: float) -> str:
    """A number with at most four digits after the point."""
    if not math.isfinite(number):
        return "too large"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    if 1e-4 <= abs(number) < 1e15:
        return f"{number:,.4f}".rstrip("0").rstrip(".")
    return f"{number:.6g}"


def header(names: Sequence[str]) -> list[str]:
    """The names of the columns, each there once."""
    seen: Counter[str] = Counter()
    named = []
    for number, name in enumerate(names, 1):
        name = " ".join(name.split()) or f"column {number}"
        seen[name] += 1
        named.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return named


def cell(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= MAX_CELL_CHARS * 4 else text[: MAX_CELL_CHARS * 4 - 1] + "…"


def table(columns: Iterable[Column], top: int) -> Iterator[str]:
    heads = ("Column", "Type", "Filled", "Distinct", "Smallest", "Largest", "Mean", "Most frequent")
    yield "| " + " | ".join(heads) + " |"
    yield "|:---|:---|---:|---:|---:|---:|---:|:---|"
    for column in columns:
        yield "| " + " | ".join(cell(text) for text in column.cells(top)) + " |"


def summarise(path: str, delimiter: str, wanted: Sequence[str], top: int) -> Iterator[str]:
    """The lines of the summary. Raises OSError, ValueError or csv.Error."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        if not delimiter:
            sample = file.read(SAMPLE_CHARS)
            file.seek(0)
            try:
                delimiter = csv.Sniffer().sniff(sample, ",;\t|").delimiter
            except csv.Error:
                delimiter = ","
        rows = csv.reader(file, delimiter=delimiter)
        first = next(rows, None)
        if first is None:
            raise ValueError("the file is empty")
        columns = [Column(name) for name in header(first)]
        count = short = long = 0
        for row in rows:
            if not row:
                continue
            count += 1
            short += len(row) < len(columns)
            long += len(row) > len(columns)
            for column, value in zip(columns, row, strict=False):
                column.add(value)
    chosen = [column for column in columns if not wanted or column.name in wanted]
    missing = set(wanted) - {column.name for column in columns}
    if missing:
        names = ", ".join(column.name for column in columns)
        raise ValueError(f"there is no column {', '.join(sorted(missing))}; there are {names}")
    yield f"{path}: {count:,} rows, {len(columns):,} columns"
    yield ""
    yield from table(chosen, top)
    for number, what in ((short, "fewer values than"), (long, "more values than")):
        if number:
            rows_have = "row has" if number == 1 else "rows have"
            yield f"\n{number:,} {rows_have} {what} the first line."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="the CSV file, in UTF-8")
    parser.add_argument("--delimiter", default="", help="found by itself if not given")
    parser.add_argument("--columns", default="", help="names, with commas between them")
    parser.add_argument("--top", type=int, default=3, help="most frequent texts of a column")
    options = parser.parse_args()
    if len(options.delimiter) > 1:
        parser.error("--delimiter takes one character")
    wanted = [name.strip() for name in options.columns.split(",") if name.strip()]
    try:
        for line in summarise(options.path, options.delimiter, wanted, options.top):
            print(line)
    except UnicodeDecodeError:
        print(f"{options.path} is not text in UTF-8.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{options.path} cannot be read: {error.strerror}.", file=sys.stderr)
        return 1
    except (csv.Error, ValueError) as error:
        print(f"{options.path} cannot be summarised: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
