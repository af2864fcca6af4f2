"""A folder of skills on disk: seen as it is at each look, and never left by a link."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md
from web.harness.skills import disk
from web.harness.skills.folder import SkillFolder
from web.harness.skills.limits import SkillLimits
from web.harness.values.errors import LimitExceeded, NotFound, SkillRefused

LIMITS = SkillLimits(max_skills=5, max_files=4, max_skill_md_bytes=2_000, max_skill_bytes=9_000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "skills"
    place.mkdir()
    return place


@pytest.fixture
def folder(root: Path) -> SkillFolder:
    return SkillFolder(root, limits=LIMITS)


@pytest.fixture
def later(root: Path) -> SkillFolder:
    """The same, some time after all that happens: what it knows, it knows by its marks alone."""
    return SkillFolder(root, limits=LIMITS, now_ns=lambda: time.time_ns() + 60_000_000_000)


def fault_of(folder: SkillFolder, name: str) -> str:
    skill = folder.find(name)
    assert skill is not None
    assert "\n" not in skill.fault
    return skill.fault


def test_a_folder_that_is_not_there_holds_no_skills(tmp_path: Path) -> None:
    folder = SkillFolder(tmp_path / "none")
    assert folder.skills() == ()
    with pytest.raises(NotFound):
        folder.read("a")
    assert not (tmp_path / "none").exists()


def test_skills_are_listed_by_name_with_what_they_say(root: Path, folder: SkillFolder) -> None:
    put(root, "b")
    put(root, "a", skill_md("a", "What it does."))
    (root / "README.md").write_text("no skill")
    put(root, ".hidden", skill_md("hidden"))
    assert [(skill.name, skill.description, skill.fault) for skill in folder.skills()] == [
        ("a", "What it does.", ""),
        ("b", "Does a thing.", ""),
    ]


def test_a_skill_is_read_with_the_files_beside_it(root: Path, folder: SkillFolder) -> None:
    put(root, "a", references__x_md="ref", scripts__y_py="print()")
    (root / "a" / ".swp").write_text("editor")
    put(root / "a" / "scripts", "__pycache__", "compiled")
    text = folder.read("a")
    assert text.left_out == 0
    assert text.body == "Do it."
    assert text.source == skill_md("a")
    assert [(file.path, file.size) for file in text.files] == [
        ("references/x.md", 3),
        ("scripts/y.py", 7),
    ]
    assert folder.read_file("a", "./references/x.md") == b"ref"
    assert dict(folder.read_all("a"))["scripts/y.py"] == b"print()"


def rename_save(path: Path, text: str) -> None:
    beside = path.with_name(path.name + "~")
    beside.write_text(text)
    os.replace(beside, path)


def write_in_place(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.mark.parametrize("save", [rename_save, write_in_place])
def test_an_edit_shows_at_the_next_look(
    root: Path, later: SkillFolder, save: Callable[[Path, str], None]
) -> None:
    place = put(root, "a", skill_md("a", "First"))
    for description in ("Other", "Longer", "Short"):
        assert later.find("a") is later.find("a")
        save(place / "SKILL.md", skill_md("a", description))
        found = later.find("a")
        assert found is not None
        assert found.description == description


def test_a_change_that_leaves_no_mark_shows_while_the_last_one_is_new(
    root: Path, folder: SkillFolder
) -> None:
    """Times on disk are coarse. Here the text is changed in memory that the system shares with the
    file, which leaves its size and times as they are after the first time."""
    place = put(root, "a", skill_md("a", "number 0")) / "SKILL.md"
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        at = shared.find(b"number 0") + len(b"number ")
        for number in b"1234":
            shared[at] = number
            found = folder.find("a")
            assert found is not None
            assert found.description == f"number {number:c}"


def test_what_has_not_changed_is_not_read_again(root: Path, later: SkillFolder) -> None:
    put(root, "a")
    put(root, "b")
    first = later.find("a"), later.find("b")
    put(root, "b", skill_md("b", "Other"))
    assert later.find("a") is first[0]
    assert later.find("b") is not first[1]


def test_skills_that_come_and_go_are_noticed(root: Path, folder: SkillFolder) -> None:
    put(root, "a")
    assert [skill.name for skill in folder.skills()] == ["a"]
    put(root, "b")
    assert [skill.name for skill in folder.skills()] == ["a", "b"]
    (root / "a").rename(root / "c")
    found = folder.skills()
    assert [(skill.name, bool(skill.fault)) for skill in found] == [("b", False), ("c", True)]
    with pytest.raises(NotFound):
        folder.read("a")


def test_a_link_put_into_an_old_skill_is_noticed(root: Path, later: SkillFolder) -> None:
    place = put(root, "a", deep__er__x_md="x")
    assert fault_of(later, "a") == ""
    (place / "deep" / "er" / "out").symlink_to("/etc/passwd")
    assert fault_of(later, "a") == 'The link "deep/er/out" leads out of the folder.'
    (place / "deep" / "er" / "out").unlink()
    assert fault_of(later, "a") == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no front matter", "no front matter"),
        ("---\nname: [\n---\n", "not YAML"),
        (skill_md("other"), "not that of its folder"),
        (skill_md("a") + "x" * 2_000, "larger than 2,000 bytes"),
    ],
)
def test_a_broken_skill_is_listed_and_harms_no_other(
    root: Path, folder: SkillFolder, text: str, words: str
) -> None:
    put(root, "a", text)
    put(root, "b")
    assert words in fault_of(folder, "a")
    assert fault_of(folder, "b") == ""
    with pytest.raises(SkillRefused, match="is broken"):
        folder.read_all("a")
    put(root, "a")
    assert fault_of(folder, "a") == ""


def test_bytes_that_are_no_text_are_a_fault(root: Path, folder: SkillFolder) -> None:
    (put(root, "a") / "SKILL.md").write_bytes(b"---\nname: a\ndescription: \xff\n---\n")
    assert fault_of(folder, "a") == "SKILL.md is not text in UTF-8 (line 3)."


def test_a_folder_without_skill_md_says_so(root: Path, folder: SkillFolder) -> None:
    (root / "empty").mkdir()
    assert fault_of(folder, "empty") == "There is no SKILL.md in the folder."
    (root / "lower").mkdir()
    (root / "lower" / "skill.md").write_text(skill_md("lower"))
    assert fault_of(folder, "lower") == "Its file skill.md must be called SKILL.md."


def test_limits_of_a_skill_are_faults(root: Path, folder: SkillFolder) -> None:
    put(root, "many", **{f"f{number}_md": "x" for number in range(4)})
    assert fault_of(folder, "many") == "It holds more than 4 files."
    put(root, "large", data_txt="x" * 9_000)
    assert "at most 9,000 are taken" in fault_of(folder, "large")


def test_more_skills_than_the_limit_are_told_of(root: Path, folder: SkillFolder) -> None:
    for number in range(9):
        put(root, f"s{number}")
    *kept, last = folder.skills()
    assert [skill.name for skill in kept] == ["s0", "s1", "s2", "s3", "s4"]
    assert last.fault == "At most 5 skills are read; 4 are left out, this one first."
    for name in ("s5", "s6"):
        with pytest.raises(NotFound):
            folder.read(name)


def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir(exist_ok=True)
    put(tmp_path / "outside", "a", secret_txt="secret")
    return place / "a"


def test_a_skill_that_is_a_link_is_broken(root: Path, folder: SkillFolder, tmp_path: Path) -> None:
    (root / "a").symlink_to(outside(tmp_path))
    assert "It is a link" in fault_of(folder, "a")
    for read in (folder.read, folder.read_all, lambda name: folder.read_file(name, "secret.txt")):
        with pytest.raises((SkillRefused, OSError)):
            read("a")


def test_no_link_in_a_skill_is_followed(root: Path, folder: SkillFolder, tmp_path: Path) -> None:
    place = put(root, "a", own_md="own")
    secret = outside(tmp_path)
    (place / "folder").symlink_to(secret)
    (place / "file").symlink_to(secret / "secret.txt")
    (place / "inner").symlink_to("own.md")
    assert "leads out of the folder" in fault_of(folder, "a")
    for path in ("folder/secret.txt", "file", "inner"):
        with pytest.raises(SkillRefused, match="link"):
            folder.read_file("a", path)
    (place / "folder").unlink()
    (place / "file").unlink()
    assert fault_of(folder, "a") == ""
    assert folder.read("a").left_out == 1
    assert [path for path, _ in folder.read_all("a")] == ["SKILL.md", "own.md"]


def test_a_skill_md_that_is_a_link_is_not_read(
    root: Path, folder: SkillFolder, tmp_path: Path
) -> None:
    place = put(root, "a")
    (place / "SKILL.md").unlink()
    (place / "SKILL.md").symlink_to(outside(tmp_path) / "SKILL.md")
    assert "leads out" in fault_of(folder, "a")
    with pytest.raises(SkillRefused, match="is a link"):
        folder.read("a")


def test_a_folder_swapped_for_a_link_is_not_entered(
    root: Path, folder: SkillFolder, tmp_path: Path
) -> None:
    """The name was checked, and is a link by the time it is opened."""
    put(root, "a", secret_txt="own")
    with folder.lock:
        assert folder.find("a") is not None
        (root / "a").rename(root / ".gone")
        (root / "a").symlink_to(outside(tmp_path))
        with pytest.raises(OSError, match="a"), folder.opened("a"):
            pass


def test_a_file_that_turns_into_a_link_all_the_time_is_never_followed(
    root: Path, folder: SkillFolder, tmp_path: Path
) -> None:
    place = put(root, "a", x_md="own")
    secret = outside(tmp_path) / "secret.txt"
    done = threading.Event()

    def swap() -> None:
        number = 0
        while not done.is_set():
            number += 1
            beside = place / f".{number}"
            if number % 2:
                beside.symlink_to(secret)
            else:
                beside.write_text("own")
            os.replace(beside, place / "x.md")

    swapping = threading.Thread(target=swap)
    swapping.start()
    read: set[bytes] = set()
    ends = time.monotonic() + 0.3
    try:
        with folder.opened("a") as opened:
            while time.monotonic() < ends or not read:
                with contextlib.suppress(SkillRefused):
                    read.add(disk.read_file(opened, ("x.md",), 100))
    finally:
        done.set()
        swapping.join(10)
    assert read <= {b"own", b""}


def test_pipes_and_sockets_are_left_alone(root: Path, folder: SkillFolder) -> None:
    place = put(root, "a")
    os.mkfifo(place / "pipe")
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(place)
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        assert folder.read("a").left_out == 2
        for name in ("pipe", "socket"):
            with pytest.raises(SkillRefused, match="device, pipe or socket"):
                folder.read_file("a", name)
    (place / "SKILL.md").unlink()
    os.mkfifo(place / "SKILL.md")
    assert "device, pipe or socket" in fault_of(folder, "a")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../b/SKILL.md", "x/../../b/SKILL.md", "x//y", "x/", "..", "a\\b"),
        *("C:x", "a\0b", ".git/config", "x\u2215y", "x\uff0fy", "\uff0e\uff0e/x", "a\u202eb"),
        *("con", "x.", "a\ud800", "/".join("x" * 9), "x" * 151, "x" * 401),
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused(
    root: Path, folder: SkillFolder, path: str
) -> None:
    put(root, "a")
    put(root, "b")
    with pytest.raises(SkillRefused, match="is refused"):
        folder.read_file("a", path)


@pytest.mark.parametrize("name", ["..", ".", "../outside/a", "", "a/..", ".deleted", "a\0"])
def test_a_name_that_is_not_listed_is_never_opened(
    root: Path, folder: SkillFolder, tmp_path: Path, name: str
) -> None:
    outside(tmp_path)
    put(root, "a")
    for read in (folder.read, folder.read_all, lambda name: folder.read_file(name, "SKILL.md")):
        with pytest.raises(NotFound):
            read(name)


def test_a_file_beyond_the_limit_is_not_read_whole(root: Path, folder: SkillFolder) -> None:
    put(root, "a", big_txt="x" * 500)
    with pytest.raises(LimitExceeded, match="larger than 499"):
        folder.read_file("a", "big.txt", 499)
    assert len(folder.read_file("a", "big.txt", 500)) == 500


def test_a_name_that_is_no_unicode_is_listed_as_broken(root: Path, folder: SkillFolder) -> None:
    os.mkdir(os.fsencode(root) + b"/\xff")
    (skill,) = folder.skills()
    assert skill.name == "\\xff"
    assert skill.fault
    skill.name.encode()
