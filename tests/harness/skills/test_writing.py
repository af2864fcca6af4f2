"""Skills installed, edited, deleted and brought back, while others look."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md, uploaded
from web.harness.skills import writing
from web.harness.skills.folder import SkillFolder
from web.harness.skills.limits import SkillLimits
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, SkillRefused

LIMITS = SkillLimits(max_skills=3, kept_deleted=2)


@pytest.fixture
def folder(tmp_path: Path) -> SkillFolder:
    return SkillFolder(tmp_path / "skills", origin="upload", writable=True, limits=LIMITS)


def add(folder: SkillFolder, name: str, body: str = "Do it.", *, replace: bool = False) -> None:
    writing.install(folder, [uploaded("x.md", skill_md(name, body=body))], replace=replace)


def names(folder: SkillFolder) -> list[str]:
    return [skill.name for skill in folder.skills()]


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced(folder: SkillFolder) -> None:
    add(folder, "a", "first")
    with pytest.raises(SkillRefused) as caught:
        add(folder, "a", "second")
    assert caught.value.code == "skill_exists"
    assert folder.read("a").body == "first"
    add(folder, "a", "second", replace=True)
    assert folder.read("a").body == "second"
    writing.restore(folder, "a")
    assert folder.read("a").body == "first"
    writing.restore(folder, "a")
    assert folder.read("a").body == "second"


def test_a_skill_is_edited_whole_and_keeps_its_files(folder: SkillFolder) -> None:
    add(folder, "a")
    (folder.root / "a" / "more.md").write_text("more")
    writing.edit(folder, "a", skill_md("a", body="New ü").replace("\n", "\r\n"))
    assert folder.read("a").source == skill_md("a", body="New ü")
    assert sorted(os.listdir(folder.root / "a")) == ["SKILL.md", "more.md"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no front matter",
        skill_md("b"),
        *(skill_md("a") + end for end in ("x" * 70_000, "\0", "\ud800")),
    ],
)
def test_an_edit_that_would_break_the_skill_is_refused(folder: SkillFolder, text: str) -> None:
    add(folder, "a")
    before = folder.read("a")
    with pytest.raises((SkillRefused, LimitExceeded)):
        writing.edit(folder, "a", text)
    assert folder.read("a") == before
    assert os.listdir(folder.root / "a") == ["SKILL.md"]


def test_an_edit_of_a_text_that_was_changed_meanwhile_is_refused(folder: SkillFolder) -> None:
    add(folder, "a", "first")
    seen = folder.read("a").sha256
    writing.edit(folder, "a", skill_md("a", body="second"), seen=seen)
    with pytest.raises(SkillRefused) as caught:
        writing.edit(folder, "a", skill_md("a", body="third"), seen=seen)
    assert caught.value.code == "skill_changed"
    assert folder.read("a").body == "second"


def test_a_broken_skill_is_mended_by_an_edit(folder: SkillFolder) -> None:
    place = put(folder.root, "a", "broken")
    writing.edit(folder, "a", skill_md("a"), seen=folder.read("a").sha256)
    assert folder.read("a").skill.fault == ""
    (place / "SKILL.md").unlink()
    writing.edit(folder, "a", skill_md("a"))
    assert folder.read("a").skill.fault == ""


def test_an_edit_replaces_a_link_and_not_what_it_points_to(
    folder: SkillFolder, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    place = put(folder.root, "a") / "SKILL.md"
    place.unlink()
    place.symlink_to(secret)
    writing.edit(folder, "a", skill_md("a"))
    assert secret.read_text() == "secret"
    assert not place.is_symlink()


def test_what_is_deleted_comes_back_as_it_was(folder: SkillFolder) -> None:
    add(folder, "a", "first")
    (folder.root / "a" / "more.md").write_text("more")
    writing.delete(folder, "a")
    assert names(folder) == []
    assert writing.deleted(folder) == ("a",)
    with pytest.raises(NotFound):
        writing.delete(folder, "a")
    writing.restore(folder, "a")
    assert dict(folder.read_all("a"))["more.md"] == b"more"
    assert writing.deleted(folder) == ()
    with pytest.raises(NotFound):
        writing.restore(folder, "a")


def test_a_skill_put_in_meanwhile_changes_places_with_the_deleted_one(folder: SkillFolder) -> None:
    add(folder, "a", "first")
    writing.delete(folder, "a")
    add(folder, "a", "second")
    writing.restore(folder, "a")
    assert folder.read("a").body == "first"
    assert writing.deleted(folder) == ("a",)


def test_the_newest_deleted_skills_are_kept(folder: SkillFolder) -> None:
    for name in ("a", "b", "c"):
        add(folder, name)
        writing.delete(folder, name)
    assert writing.deleted(folder) == ("b", "c")


def test_broken_skills_and_links_are_deleted_and_nothing_beyond_them(
    folder: SkillFolder, tmp_path: Path
) -> None:
    outside = put(tmp_path / "outside", "kept")
    folder.root.mkdir()
    (folder.root / "link").symlink_to(outside)
    put(folder.root, "Broken Name", "x")
    for name in ("link", "Broken Name"):
        writing.delete(folder, name)
    for name in ("x", "y"):
        add(folder, name)
        writing.delete(folder, name)
    assert writing.deleted(folder) == ("x", "y")
    assert (outside / "SKILL.md").exists()


@pytest.mark.parametrize("name", ["..", ".", "", "../outside/kept", "a/../a", ".deleted", "/etc"])
def test_only_what_is_listed_can_be_changed(folder: SkillFolder, tmp_path: Path, name: str) -> None:
    outside = put(tmp_path / "outside", "kept")
    add(folder, "a")
    writing.delete(folder, "a")
    add(folder, "a")
    changes: list[Callable[[], None]] = [
        lambda: writing.delete(folder, name),
        lambda: writing.restore(folder, name),
        lambda: writing.edit(folder, name, skill_md("a")),
    ]
    for change in changes:
        with pytest.raises((NotFound, SkillRefused)):
            change()
    assert (outside / "SKILL.md").exists()
    assert names(folder) == ["a"]


def test_a_folder_that_is_read_only_is_never_written(tmp_path: Path) -> None:
    place = put(tmp_path / "skills", "a")
    folder = SkillFolder(tmp_path / "skills", origin="sample")
    before = sorted(tmp_path.rglob("*"))
    changes: list[Callable[[], None]] = [
        lambda: add(folder, "b"),
        lambda: add(folder, "a", replace=True),
        lambda: writing.edit(folder, "a", skill_md("a")),
        lambda: writing.delete(folder, "a"),
        lambda: writing.restore(folder, "a"),
    ]
    for change in changes:
        with pytest.raises(HarnessError) as caught:
            change()
        assert caught.value.code == "skill_read_only"
    assert sorted(tmp_path.rglob("*")) == before
    assert (place / "SKILL.md").read_text() == skill_md("a")


def test_no_more_skills_than_the_limit(folder: SkillFolder) -> None:
    for name in ("a", "b", "c"):
        add(folder, name)
    with pytest.raises(LimitExceeded, match="There are 3 skills"):
        add(folder, "d")
    add(folder, "c", "other", replace=True)
    writing.delete(folder, "b")
    add(folder, "d")
    with pytest.raises(LimitExceeded):
        writing.restore(folder, "b")
    assert writing.deleted(folder) == ("b", "c")
    assert names(folder) == ["a", "c", "d"]


def test_what_a_dead_process_had_under_way_is_swept_and_what_is_new_is_not(
    folder: SkillFolder,
) -> None:
    old, new = folder.root / ".new-old", folder.root / ".new-new"
    for place in (old, new):
        put(place, "x")
    os.utime(old, (0, 0))
    add(folder, "a")
    assert not old.exists()
    assert new.exists()
    assert names(folder) == ["a"]


def test_a_skill_changes_only_while_nobody_looks(folder: SkillFolder) -> None:
    add(folder, "a", "first")
    changes: list[Callable[[], None]] = [
        lambda: add(folder, "a", "second", replace=True),
        lambda: writing.edit(folder, "a", skill_md("a", body="second")),
        lambda: writing.delete(folder, "a"),
    ]
    for change in changes:
        changing = threading.Thread(target=change)
        with folder.lock:
            before = folder.read("a")
            changing.start()
            # Time enough for what would not wait.
            changing.join(0.1)
            assert folder.read("a") == before
        changing.join(10)
        assert not changing.is_alive()
    assert names(folder) == []


def test_whoever_looks_while_a_skill_is_replaced_always_sees_it_whole(folder: SkillFolder) -> None:
    bodies = {letter * 20_000 for letter in "xyz"}
    add(folder, "a", "x" * 20_000)
    seen: set[str] = set()
    wrong: list[object] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(folder.read("a").body)
            except HarnessError as error:
                wrong.append(error)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    ends = time.monotonic() + 0.4
    try:
        while time.monotonic() < ends or (len(seen) < 2 and not wrong):
            for letter in "xyz":
                add(folder, "a", letter * 20_000, replace=True)
            writing.edit(folder, "a", skill_md("a", body="y" * 20_000))
    finally:
        done.set()
        for reader in readers:
            reader.join(10)
    assert wrong == []
    assert len(seen) > 1
    assert seen <= bodies
