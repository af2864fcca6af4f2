"""A skill is lost neither to a crash nor to another server that writes to the same folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md, uploaded
from tests.support.lock_holder import lock_held
from tests.support.skill_writer import put_in, skills_at
from web.harness.skills import writing
from web.harness.skills.folder import LOCK_NAME, SkillFolder
from web.harness.skills.places import ABANDONED_SECONDS, STAGING_PREFIX
from web.harness.values.errors import SkillRefused

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signal kills at once there")


def bodies(folder: SkillFolder) -> tuple[str, str]:
    """What the skill says, and what the deleted one of its name says; '' for none."""
    there = folder.read("s").body.strip() if folder.find("s") else ""
    if "s" not in writing.deleted(folder):
        return there, ""
    writing.restore(folder, "s")
    return there, folder.read("s").body.strip()


@pytest.mark.parametrize(
    ("deed", "wanted"),
    [
        ("restore", {("OLD", "NEW")}),
        ("install", {("NEW", "OLD"), ("NEW", ""), ("THIRD", "NEW")}),
        ("delete", {("NEW", "OLD"), ("NEW", ""), ("", "NEW")}),
    ],
)
def test_no_skill_is_lost_wherever_a_change_of_it_is_killed(
    tmp_path: Path, deed: str, wanted: set[tuple[str, str]]
) -> None:
    command = [sys.executable, "-m", "tests.support.skill_writer", str(tmp_path), deed]
    subprocess.run(command, check=True, timeout=60)
    roots = sorted(tmp_path.iterdir(), key=lambda root: int(root.name))
    # Each was killed at another moment, and the last not at all.
    assert len(roots) > 2
    long_ago = ABANDONED_SECONDS + 60
    for root in roots:
        for left in root.glob(f"{STAGING_PREFIX}*"):
            now = left.stat().st_mtime
            os.utime(left, (now - long_ago, now - long_ago))
        writing.install(skills_at(root), [uploaded("t.md", skill_md("t"))])
        assert [each.fault for each in skills_at(root).skills() if each.name == "s"] in ([""], [])
        found = bodies(skills_at(root))
        untouched = {("NEW", "OLD")} if root is roots[0] else set()
        assert found in wanted | untouched, root.name


def test_an_edit_waits_for_that_of_another_server_and_sees_it(tmp_path: Path) -> None:
    folder = skills_at(tmp_path)
    put_in(folder, "first")
    seen = folder.read("s").sha256
    refused: list[SkillRefused] = []

    def edit() -> None:
        try:
            writing.edit(folder, "s", skill_md("s", body="mine"), seen=seen)
        except SkillRefused as error:
            refused.append(error)

    editing = threading.Thread(target=edit)
    with lock_held(tmp_path, LOCK_NAME):
        editing.start()
        # Time enough for what would not wait.
        editing.join(0.1)
        put(tmp_path, "s", skill_md("s", body="theirs"))
    editing.join(10)
    assert [error.code for error in refused] == ["skill_changed"]
    assert folder.read("s").body.strip() == "theirs"


def test_a_folder_that_another_program_keeps_is_busy_and_can_be_read(tmp_path: Path) -> None:
    put_in(skills_at(tmp_path), "first")
    folder = SkillFolder(tmp_path, origin="upload", writable=True, busy_seconds=0.05)
    with lock_held(tmp_path, LOCK_NAME):
        with pytest.raises(SkillRefused) as caught:
            writing.delete(folder, "s")
        assert folder.read("s").body.strip() == "first"
    assert caught.value.code == "skills_busy"
    writing.delete(folder, "s")


def test_a_skill_whose_name_is_no_text_is_deleted_and_brought_back(tmp_path: Path) -> None:
    for name in (b"\xff\xfe", b"\xff"):
        os.mkdir(os.path.join(os.fsencode(tmp_path), name))
    folder = skills_at(tmp_path)
    names = [skill.name for skill in folder.skills()]
    assert names == ["\\xff", "\\xff\\xfe"]
    writing.delete(folder, names[1])
    assert [skill.name for skill in folder.skills()] == names[:1]
    assert writing.deleted(folder) == (names[1],)
    writing.restore(folder, names[1])
    assert b"\xff\xfe" in os.listdir(os.fsencode(tmp_path))
