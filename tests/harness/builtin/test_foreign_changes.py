"""What a program changed in a chat's folder becomes versions that say which call ran it."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.skill_tools import SkillUse, skill_tools
from web.harness.builtin.versions import Origin
from web.harness.skills.library import SkillLibrary
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext, ToolOutput

pytestmark = pytest.mark.anyio

CALL = Origin("call", "r", "c", "key", "allow")
BY_HAND = Origin("outside")


async def test_each_change_is_the_calls_and_what_was_before_is_not_lost(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    await files.write("written.txt", b"one", Origin("person"), replace=False)
    for name in ("kept.txt", "changed.txt", "deleted.txt"):
        (tmp_path / name).write_text("by hand")
    noted = await files.note()
    (tmp_path / "made.csv").write_text("a,b\n")
    (tmp_path / "changed.txt").write_text("by the program")
    (tmp_path / "written.txt").write_text("two")
    (tmp_path / "deleted.txt").unlink()
    changed = await files.keep_changes(noted, CALL)
    assert changed.made == ("made.csv",)
    assert changed.changed == ("changed.txt", "written.txt")
    assert changed.deleted == ("deleted.txt",)
    assert changed.words == (
        "Made: made.csv. Changed: changed.txt, written.txt. Deleted: deleted.txt."
    )
    origins = {
        path: [version.origin for version in versions]
        for path, versions in (await files.histories()).items()
    }
    assert origins == {
        "written.txt": [Origin("person"), CALL],
        "kept.txt": [BY_HAND],
        "changed.txt": [BY_HAND, CALL],
        "deleted.txt": [BY_HAND, CALL],
        "made.csv": [CALL],
    }
    assert await files.read_version("deleted.txt", 1) == b"by hand"
    # What an editor does later is its own.
    (tmp_path / "made.csv").write_text("by hand")
    assert [each.origin for each in await files.versions("made.csv")] == [CALL, BY_HAND]


async def test_what_a_tool_writes_meanwhile_stays_its_own(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path)
    noted = await files.note()
    other = Origin("call", "r", "other")
    await files.write("a.txt", b"one", other, replace=False)
    changed = await files.keep_changes(noted, CALL)
    assert changed.words == ""
    assert [each.origin for each in await files.versions("a.txt")] == [other]


async def test_what_is_too_much_is_said_and_left_as_it_lies(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path, FileLimits(max_files=30, max_file_bytes=10, max_chat_bytes=300))
    noted = await files.note()
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text("x" * (20 if number < 5 else 10))
    changed = await files.keep_changes(noted, CALL)
    assert "There are more files now than the 30 that a chat may have" in changed.words
    assert len(changed.made) <= 30
    assert len(list(tmp_path.glob("*.txt"))) == 60
    for path in tmp_path.glob("[1-9]*.txt"):
        path.unlink()
    noted = await files.note()
    (tmp_path / "00.txt").write_text("y" * 11)
    assert "has 11 bytes. Up to 10 can be kept" in (await files.keep_changes(noted, CALL)).words


async def run(root: Path, script: str) -> tuple[ToolOutput, ChatFiles]:
    put(root / "skills", "a", skill_md("a"), scripts__run_py=script)
    files = ChatFiles(root / "chat")
    use = SkillUse(root / "chat", {"PATH": os.environ["PATH"]}, files=lambda: files)
    tools = ToolRegistry(skill_tools(SkillLibrary(root / "skills").of("t", "ann"), use))
    context = ToolContext("c", "r", decision="allow")
    arguments = {"skill": "a", "path": "scripts/run.py"}
    return await tools.run("run_skill_script", arguments, context, 10), files


@pytest.mark.parametrize("ending", ["print('done')", "raise SystemExit(3)"])
async def test_the_result_of_a_script_names_what_it_made(tmp_path: Path, ending: str) -> None:
    output, files = await run(tmp_path, f"open('made.csv', 'w').write('a,b')\n{ending}\n")
    assert output.files == ("made.csv",)
    assert output.text.endswith("\n\n[Made: made.csv.]")
    [version] = await files.versions("made.csv")
    assert version.origin == Origin("call", "r", "c", "", "allow")


async def test_a_script_that_changes_nothing_says_nothing_of_files(tmp_path: Path) -> None:
    output, _ = await run(tmp_path, "print('done')\n")
    assert (output.text, output.files) == ("done", ())
