"""Lines of the log of versions that no program wrote: they are passed over, the others count."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.record import transcript
from web.harness.builtin.versions import PERSON, version_data

pytestmark = pytest.mark.anyio

INF, NAN = float("inf"), float("nan")
ODD: tuple[Any, ...] = (
    INF, -INF, NAN, 1e300, -1e300, 10**30, -1, 0, 1.5, True, None, "", "5", "x", "\ud800", "../x",
    "a\r\nb: c", [], [1], {}, {"kind": "person"}, "f" * 64,
)  # fmt: skip


async def a_log(folder: Path) -> Path:
    files = ChatFiles(folder)
    await files.write("seed.txt", b"one", PERSON, replace=False)
    await files.write("seed.txt", b"two", PERSON, replace=True)
    return folder / ".harness" / "versions.jsonl"


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that lies in a line."""
    keys = list(value) if isinstance(value, dict) else []
    keys = list(range(len(value))) if isinstance(value, list) else keys
    return [place for key in keys for place in [(*way, key), *places(value[key], (*way, key))]]


def mutated(line: Any, way: tuple[Any, ...], odd: Any, *, remove: bool = False) -> Any:
    line = copy.deepcopy(line)
    inner = line
    for key in way[:-1]:
        inner = inner[key]
    if remove:
        del inner[way[-1]]
    else:
        inner[way[-1]] = odd
    return line


def usable(version: Any) -> None:
    """What the pages and the record do with a version."""
    json.dumps(version_data(version), ensure_ascii=False, allow_nan=False).encode()
    assert "".join(transcript("t", [], {"seed.txt": [version]})).encode()
    assert "\n" not in version.media_type


async def test_one_odd_line_is_passed_over(tmp_path: Path) -> None:
    log = await a_log(tmp_path)
    whole = log.read_bytes().splitlines(keepends=True)
    plan = json.loads(whole[-2])
    plan["plan"] |= {"number": 3, "at": INF}
    log.write_bytes(b"".join(whole) + json.dumps(plan).encode() + b"\n")
    versions = await ChatFiles(tmp_path).versions("seed.txt")
    assert [each.number for each in versions] == [1, 2]


async def test_whatever_stands_in_a_line_the_others_are_read(tmp_path: Path) -> None:
    log = await a_log(tmp_path)
    whole = log.read_bytes().splitlines(keepends=True)
    *_, plan, done = (json.loads(each) for each in whole)
    plan["plan"]["number"] = done["done"] = 3
    plan["plan"]["origin"]["kind"] = "restore"
    lines = [plan, done, {"drop": 1, "path": "seed.txt"}, {"undone": 3, "path": "seed.txt"}]
    every = [
        mutated(line, way, odd, remove=odd is ODD)
        for line in lines
        for way in places(line)
        for odd in (*ODD, ODD)
    ]
    chosen = random.Random(7).sample(every, 40)
    for odd in [*chosen, mutated(plan, ("plan", "at"), 1e13), 5, None, [], "x"]:
        text = json.dumps(odd).encode() + b"\n"
        log.write_bytes(b"".join(whole) + text + json.dumps(done).encode() + b"\n")
        files = ChatFiles(tmp_path)
        for path, versions in (await files.histories()).items():
            assert path == "seed.txt" or versions
            for version in versions:
                usable(version)
        versions = await files.versions("seed.txt")
        assert versions[0].number <= 2 or odd.get("drop") is not None, odd
        numbers = [each.number for each in versions]
        assert numbers == sorted(set(numbers)), odd
        # The next change finds its number.
        made = await files.write("seed.txt", text, PERSON, replace=True)
        assert (await ChatFiles(tmp_path).versions("seed.txt"))[-1] == made, odd


async def test_content_that_only_an_odd_line_names_is_not_cleared_away(tmp_path: Path) -> None:
    log = await a_log(tmp_path)
    objects = tmp_path / ".harness" / "objects"
    log.write_text(log.read_text().replace('"deed"', '"did"'))
    kept = set(objects.iterdir())
    await ChatFiles(tmp_path).write("b", b"three", PERSON, replace=False)
    assert kept <= set(objects.iterdir())
