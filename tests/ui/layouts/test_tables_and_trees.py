"""Tables a page at a time, and JSON as a tree: both bounded, whatever a file holds."""

from __future__ import annotations

import csv
import io
import os
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import OpenFile
from web.ui.layouts.json_trees import MAX_NODES, json_tree
from web.ui.layouts.tables import (
    MAX_CELL_CHARS,
    MAX_COLUMNS,
    MAX_ROW_BYTES,
    PAGE_ROWS,
    Table,
    read_index,
    read_page,
)

Opened = Callable[[str], OpenFile]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    descriptors: list[int] = []

    def make(text: str) -> OpenFile:
        path = tmp_path / f"{len(descriptors)}.csv"
        path.write_text(text, newline="")
        descriptors.append(os.open(path, os.O_RDONLY))
        return OpenFile(descriptors[-1], path.stat().st_size, 0.0, str(path), "text/plain")

    yield make
    for descriptor in descriptors:
        os.close(descriptor)


def read_table(file: OpenFile, page: int) -> Table | None:
    index = read_index(file)
    return read_page(file, index, page) if index is not None else None


def test_each_page_has_its_rows_and_says_how_many_there_are(opened: Opened) -> None:
    file = opened("n;text\r\n" + "".join(f'{n};"a;\n{n}"\r\n' for n in range(2 * PAGE_ROWS + 5)))
    for asked, page, first, last in (
        (1, 1, 0, PAGE_ROWS - 1),
        (3, 3, 2 * PAGE_ROWS, 2 * PAGE_ROWS + 4),
        (99, 3, 2 * PAGE_ROWS, 2 * PAGE_ROWS + 4),
        (0, 1, 0, PAGE_ROWS - 1),
    ):
        table = read_table(file, asked)
        assert table is not None
        assert (table.page, table.pages, table.count) == (page, 3, 2 * PAGE_ROWS + 5)
        assert table.heading == ("n", "text")
        assert table.first == first + 1
        assert table.rows[0] == (str(first), f"a;\n{first}")
        assert table.rows[-1] == (str(last), f"a;\n{last}")


def test_a_page_beyond_the_end_is_the_last_one_also_at_the_first_look(opened: Opened) -> None:
    table = read_table(opened("a,b\n" + "1,2\n" * (PAGE_ROWS + 1)), 1_000)
    assert table is not None
    assert (table.page, len(table.rows)) == (2, 1)


@pytest.mark.parametrize("seed", range(8))
def test_every_row_is_found_by_the_index_as_it_is_read_from_the_start(
    seed: int, opened: Opened
) -> None:
    chance = random.Random(seed)
    cells = ("1", "", "é🎒", '"a\n\nb"', '"c\r\n"', '"say ""so"""', 'd"e', "x" * 3_000)
    few = (cells[:3], cells, cells[3:5], cells[6:])[seed % 4]
    ends = chance.choice([["\n"], ["\r\n"], ["\r"], ["\n", "\n\n", "\r\n\r\n"]])
    lines = 400 if cells[-1] in few else 9_000
    text = "\ufeff\n\nhead,of it\n" + "".join(
        ",".join(chance.choices(few, k=3)) + chance.choice(ends) for _ in range(lines)
    )
    text += chance.choice(["", '"open\nto the end', "last"])
    file = opened(text)
    rows = list(filter(None, csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))))
    index = read_index(file)
    assert index is not None
    assert len(index.offsets) > 2
    assert index.rows[-1] == len(rows)
    for page in {1, 2, -(-(len(rows) - 1) // PAGE_ROWS)}:
        table = read_page(file, index, page)
        assert table is not None
        first = 1 + (table.page - 1) * PAGE_ROWS
        wanted = [
            tuple(cell[:MAX_CELL_CHARS] + "…" * (len(cell) > MAX_CELL_CHARS) for cell in row)
            for row in rows[first : first + PAGE_ROWS]
        ]
        assert table.rows == wanted
        assert (table.heading, table.count) == (("head", "of it"), len(rows) - 1)


def test_a_further_page_reads_a_few_bytes_and_not_all_before_it(opened: Opened) -> None:
    file = opened("a,b\n" + "1,2\n" * 1_000_000)
    index = read_index(file)
    assert index is not None
    assert len(index.offsets) < 100
    assert all(index.span(page) <= 3 * 64 * 1024 for page in (1, 2_500, 4_999, 5_000, 9_999))
    table = read_page(file, index, 5_000)
    assert table is not None
    assert (table.first, len(table.rows)) == (999_801, PAGE_ROWS)


def test_what_is_not_read_in_time_is_left_out_and_told(opened: Opened) -> None:
    file = opened("a,b\n" + "1,2\n" * 1_000_000)
    index = read_index(file, count().__next__)
    assert index is not None
    table = read_page(file, index, 10_000)
    assert table is not None
    assert table.cut
    assert 0 < table.count < 1_000_000
    assert table.page == table.pages


def test_wide_rows_and_long_cells_are_cut(opened: Opened) -> None:
    table = read_table(opened(",".join(["x" * 600] * (MAX_COLUMNS + 7)) + "\n"), 1)
    assert table is not None
    assert (len(table.heading), table.more_columns, table.rows) == (MAX_COLUMNS, 7, [])
    assert len(table.heading[0]) == MAX_CELL_CHARS + 1


def test_what_no_table_can_be_is_none(opened: Opened) -> None:
    assert read_table(opened(""), 1) is None
    # Longer than any cell may be.
    assert read_table(opened('"' + "x" * 200_000), 1) is None
    # A row is read whole, so it has a limit; in quotes it may have many lines.
    assert read_table(opened("ab," * (MAX_ROW_BYTES // 3 + 1)), 1) is None
    assert read_table(opened("a\n" + '"\n",' * (MAX_ROW_BYTES // 4 + 1)), 1) is None


def test_a_tree_stops_somewhere_and_says_what_is_left_out() -> None:
    html = json_tree(b"[" + b",".join([b'{"a":1}'] * 10_000) + b"]")
    assert html is not None
    assert html.count("<li") < MAX_NODES + 10
    assert "more, not shown" in html


def test_a_tree_escapes_names_and_values_and_refuses_what_is_none() -> None:
    html = json_tree(b'\xef\xbb\xbf{"<b>": "<i>", "n": null, "e": {}, "l": []}')
    assert html is not None
    assert "<b>&lt;b&gt;</b>" in html
    assert "&lt;i&gt;" in html
    assert json_tree(b"{") is None
    assert json_tree(b"[" * 100_000) is None
    assert json_tree(b"\xff") is None
