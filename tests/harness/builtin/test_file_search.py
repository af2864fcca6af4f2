"""Files found by name and by what they hold."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.loop_share import loop_share
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_search import MAX_FOUND, SEARCH_SECONDS, _Names, by_pattern
from web.harness.builtin.files import file_tools
from web.harness.builtin.versions import FileInfo
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

FILES = {
    "plan.md": "# Plan\nBuy MILK\n",
    "notes/a.md": "milk and\nhoney\n",
    "notes/deep/b.txt": "no\n  milk  \n",
    "notes/deep/c.bin": "milk\0",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    return tmp_path


async def text_of(at: Path, tool: str, **arguments: object) -> str:
    registry = ToolRegistry(file_tools(ChatFiles(at)))
    return (await registry.run(tool, arguments, ToolContext("c"), 30)).text


@pytest.mark.parametrize(
    ("pattern", "fits", "misses"),
    [
        ("*.md", ["a.md", "x/y/A.MD"], ["a.txt", "md"]),
        ("a?.txt", ["ab.txt", "x/aü.txt"], ["a.txt", "abc.txt"]),
        ("notes/*", ["notes/a"], ["notes/x/a", "a", "x/notes/a"]),
        ("notes/**", ["notes/a", "notes/x/y/a"], ["other/a"]),
        ("**/b.txt", ["b.txt", "x/y/b.txt"], ["b.txt/x"]),
        ("x/**/z", ["x/z", "x/y/z", "x/y/y/z"], ["x/z/y", "y/z"]),
        ("**/d/**/*.md", ["d/a.md", "x/d/y/a.md"], ["x/a.md", "d.md"]),
        ("[ab]*", ["all", "x/bad"], ["call"]),
        ("*", ["anything", "any/where"], []),
    ],
)
def test_a_pattern_fits_names_and_paths(pattern: str, fits: list[str], misses: list[str]) -> None:
    check = by_pattern(pattern)
    assert [path for path in [*fits, *misses] if check(path)] == fits


def test_a_pattern_made_to_take_long_takes_none() -> None:
    check, deep = by_pattern("**/" * 20 + "*a" * 50 + "b"), by_pattern("*a" * 100 + "b")
    began = time.perf_counter()
    assert not check("/".join(["a" * 60] * 16))
    assert not deep("a" * 200)
    assert time.perf_counter() - began < 5


async def test_files_are_found_by_name(folder: Path) -> None:
    assert await text_of(folder, "find_files", pattern="*.MD") == "notes/a.md\nplan.md"
    assert await text_of(folder, "find_files", pattern="none*") == 'No file fits "none*".'
    assert "1 to 300 characters" in await text_of(folder, "find_files", pattern="")


async def test_patterns_are_tried_beside_the_event_loop(folder: Path) -> None:
    deep = folder / "/".join(["a" * 40 + "c"] * 12)
    deep.mkdir(parents=True)
    for number in range(600):
        (deep / f"{number}{'a' * 40}c").touch()
    pattern = "/".join(["**", "*????????????c"] * 16)
    for tool, more in (("find_files", {}), ("search_files", {"text": "z"})):
        async with loop_share() as share:
            await text_of(folder, tool, pattern=pattern, **more)
        assert share.of_all < 0.5


def test_a_search_by_name_that_is_stopped_says_what_is_left() -> None:
    files = [SimpleNamespace(path=name) for name in "abc"]
    names = _Names(lambda path: path == "a")
    names.fits = lambda path: (names.stop(), path == "a")[1]  # type: ignore[func-returns-value]
    names.look_at(cast("list[FileInfo]", files))
    lines = names.answer("*").splitlines()
    assert lines[0] == "a"
    assert "with 2 more files to look at" in lines[1]


async def test_lines_are_found_with_their_numbers(folder: Path) -> None:
    found = await text_of(folder, "search_files", text="milk")
    assert found.splitlines() == [
        "notes/a.md:1: milk and",
        "notes/deep/b.txt:2: milk",
        "plan.md:2: Buy MILK",
        "Files that are not text: 1.",
    ]
    only = await text_of(folder, "search_files", text="milk", match_case=True, pattern="*.md")
    assert only == "notes/a.md:1: milk and"
    inside = await text_of(
        folder, "search_files", text="MILK", folder="notes/deep", pattern="*.txt"
    )
    assert inside == "notes/deep/b.txt:2: milk"
    assert await text_of(folder, "search_files", text="a.*d") == (
        'Nothing holds "a.*d".\nFiles that are not text: 1.'
    )
    assert "not empty" in await text_of(folder, "search_files", text="")


async def test_what_is_found_is_bounded_in_number_and_length(folder: Path) -> None:
    (folder / "many.txt").write_text("milk\n" * 1000)
    (folder / "long.txt").write_text("x" * 50_000 + "honey" + "y" * 50_000)
    lines = (await text_of(folder, "search_files", text="milk")).splitlines()
    assert len(lines) == MAX_FOUND + 1
    assert lines[-1].startswith("There is more")
    (line,) = (await text_of(folder, "search_files", text="honey", pattern="long*")).splitlines()
    assert "honey" in line
    assert len(line) < 250


@pytest.mark.full
async def test_a_search_ends_in_time(folder: Path) -> None:
    for number in range(6):
        (folder / f"big{number}.txt").write_bytes(b"x\n" * 20_000_000)
    began = time.perf_counter()
    found = await text_of(folder, "search_files", text="never there")
    assert time.perf_counter() - began < SEARCH_SECONDS + 15
    assert "Stopped after 5 seconds" in found
