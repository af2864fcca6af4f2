"""The log of versions as it was written by earlier programs, and as a later one may write it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.versions import Origin, Version

pytestmark = pytest.mark.anyio

ONE = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"

VERSION_1 = """\
{"log": 1, "token": "0123456789abcdef"}
{"plan": {"number": 1, "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed", "size": 3, "at": 1.5, "media_type": "text/plain", "deed": "written", "origin": {"kind": "call", "run_id": "r1", "call_id": "c1", "approval": "c1-key", "decision": "allow"}, "restored": 0}, "path": "a.txt"}
{"done": 1, "path": "a.txt", "stamp": [3, 1500000000, 1500000001, 77]}
{"plan": {"number": 2, "sha256": "", "size": 0, "at": 2.5, "media_type": "", "deed": "deleted", "origin": {"kind": "person", "run_id": "", "call_id": "", "approval": "", "decision": ""}, "restored": 0}, "path": "a.txt"}
{"done": 2, "path": "a.txt", "stamp": null}
{"plan": {"number": 3, "sha256": "", "size": 0, "at": 3.0, "media_type": "", "deed": "deleted", "origin": {"kind": "person"}}, "path": "a.txt"}
{"undone": 3, "path": "a.txt"}
{"plan": {"number": 1, "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed", "size": 3, "at": 3.5, "media_type": "text/plain", "deed": "found", "origin": {"kind": "outside"}, "restored": 0}, "path": "b.txt"}
{"done": 1, "path": "b.txt", "stamp": null}
{"drop": 1, "path": "b.txt"}
"""  # noqa: E501

ADDED_BY_THE_FUTURE = """\
{"moved": 3, "path": "a.txt", "to": "c.txt"}
{"plan": {"number": 3, "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed", "size": 3, "at": 4.0, "media_type": "text/plain", "deed": "restored", "origin": {"kind": "restore", "device": "phone"}, "restored": 1, "mood": "good"}, "path": "a.txt"}
{"done": 3, "path": "a.txt", "stamp": null, "more": 1}
"""  # noqa: E501

FIRST = Version(
    1, ONE, 3, 1.5, "text/plain", "written", Origin("call", "r1", "c1", "c1-key", "allow")
)
SECOND = Version(2, "", 0, 2.5, "", "deleted", Origin("person"))
THIRD = Version(3, ONE, 3, 4.0, "text/plain", "restored", Origin("restore"), 1)


def folder_with(tmp_path: Path, log: str) -> Path:
    (tmp_path / ".harness" / "objects").mkdir(parents=True)
    (tmp_path / ".harness" / "versions.jsonl").write_text(log)
    (tmp_path / ".harness" / "objects" / ONE).write_text("one")
    return tmp_path


async def test_the_first_form_is_read(tmp_path: Path) -> None:
    files = ChatFiles(folder_with(tmp_path, VERSION_1))
    assert await files.versions("a.txt") == (FIRST, SECOND)
    assert await files.versions("b.txt") == ()
    assert await files.read_version("a.txt", 1) == b"one"


async def test_what_a_later_program_has_added_is_passed_over(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, VERSION_1 + ADDED_BY_THE_FUTURE)
    (folder / "a.txt").write_text("one")
    assert await ChatFiles(folder).versions("a.txt") == (FIRST, SECOND, THIRD)


async def test_the_form_that_is_written_is_the_first_one(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path, now=iter((1.5, 2.5)).__next__)
    await files.write("a.txt", b"one", FIRST.origin, replace=False)
    await files.delete("a.txt", SECOND.origin)
    written = (tmp_path / ".harness" / "versions.jsonl").read_text().splitlines()
    lines, samples = (
        [json.loads(line) for line in text] for text in (written, VERSION_1.splitlines()[:5])
    )
    for line in (*lines, *samples):
        line.pop("token", None)
        if line.get("stamp"):
            line["stamp"] = [type(each).__name__ for each in line["stamp"]]
    assert lines == samples
