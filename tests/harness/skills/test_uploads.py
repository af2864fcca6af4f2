"""What people upload as skills, as somebody who means harm would pack it."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from tests.harness.skills.writers import (
    DEVICE,
    LINK,
    PIPE,
    skill_md,
    special,
    uploaded,
    zipped,
)
from web.harness.skills.folder import SkillFolder
from web.harness.skills.limits import SkillLimits
from web.harness.skills.uploads import UploadedFile
from web.harness.skills.writing import install
from web.harness.values.errors import HarnessError, LimitExceeded, SkillRefused

LIMITS = SkillLimits(
    max_files=6, max_file_bytes=200_000, max_skill_bytes=300_000, max_archive_bytes=200_000
)
MD = ("SKILL.md", skill_md("a"))


@pytest.fixture
def folder(tmp_path: Path) -> SkillFolder:
    return SkillFolder(tmp_path / "skills", origin="upload", writable=True, limits=LIMITS)


def as_zip(content: bytes) -> list[UploadedFile]:
    return [uploaded("skill.zip", content)]


def everything_below(folder: SkillFolder) -> list[str]:
    root = folder.root.parent
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path != folder.root)


def refused(folder: SkillFolder, files: list[UploadedFile]) -> str:
    """The words of the refusal, which leaves nothing behind."""
    with pytest.raises(HarnessError) as caught:
        install(folder, files)
    assert everything_below(folder) == []
    assert isinstance(caught.value, SkillRefused | LimitExceeded)
    return caught.value.message


def test_one_md_becomes_a_skill_named_by_its_front_matter(folder: SkillFolder) -> None:
    done = install(folder, [uploaded("notes.md", skill_md("my-skill"))])
    assert done == ("my-skill", 0, False, "")
    made = ["skills/.lock", "skills/my-skill", "skills/my-skill/SKILL.md"]
    assert everything_below(folder) == made
    assert folder.read("my-skill").source == skill_md("my-skill")


@pytest.mark.parametrize("top", ["", "a/", "some-download-main/"])
def test_a_zip_and_a_folder_become_the_same_skill(folder: SkillFolder, top: str) -> None:
    files = {"SKILL.md": skill_md("a"), "ref/ä b.md": "ref", "scripts/x.py": "print()"}
    named = [(top + path, content) for path, content in files.items()]
    install(folder, as_zip(zipped((f"{top}ref/", ""), *named)))
    assert {path: data.decode() for path, data in folder.read_all("a")} == files
    install(folder, [uploaded(path, content) for path, content in named], replace=True)
    assert {path: data.decode() for path, data in folder.read_all("a")} == files


def test_the_files_get_plain_modes_whatever_the_zip_and_the_umask_say(folder: SkillFolder) -> None:
    odd = special("x.py", 0o100000)
    odd.external_attr = 0o106777 << 16
    before = os.umask(0o077)
    try:
        install(folder, as_zip(zipped(MD, (odd, "print()"))))
    finally:
        os.umask(before)
    assert (folder.root / "a").stat().st_mode & 0o7777 == 0o755
    for name in ("SKILL.md", "x.py"):
        assert (folder.root / "a" / name).stat().st_mode & 0o7777 == 0o644


def test_what_systems_put_beside_is_left_out_and_counted(folder: SkillFolder) -> None:
    done = install(
        folder,
        as_zip(
            zipped(
                ("a/SKILL.md", skill_md("a")),
                ("__MACOSX/a/._SKILL.md", "x"),
                ("a/.DS_Store", "x"),
                ("a/.git/config", "x"),
                ("a/scripts/__pycache__/x.pyc", "x"),
            )
        ),
    )
    assert done.left_out == 4
    assert [path for path, _ in folder.read_all("a")] == ["SKILL.md"]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/etc/cron.d/x",
            "../x",
            "a/../../x",
            "..\\x",
            "C:\\x",
            "C:x",
            "//host/x",
            "a//b",
            "./../x",
        ),
        *(
            "a/./b",
            "..",
            "x\u2215..\u2215y",
            "\uff0e\uff0e/x",
            "a\u202eb",
            "nul",
            "aux.txt",
            "x /y",
        ),
        *("../.ssh/authorized_keys", "a/../.hidden", "x" * 200, "/".join("abcdefghij"), "a\nb"),
    ],
)
@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_a_path_that_leads_out_is_refused(folder: SkillFolder, path: str, kind: str) -> None:
    files = (
        as_zip(zipped(MD, (path, "x")))
        if kind == "zip"
        else [
            uploaded(*MD),
            uploaded(path, "x"),
        ]
    )
    assert "is refused" in refused(folder, files)


def test_a_name_with_a_nul_is_refused(folder: SkillFolder) -> None:
    packed = zipped(MD, ("x.md?../y", "x")).replace(b"x.md?", b"x.md\0")
    assert "NUL" in refused(folder, as_zip(packed))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("x", "x"), "there twice"),
        (("x", "./x"), "there twice"),
        (("README.md", "readme.MD"), "the same name on some systems"),
        (("Scripts/x", "scripts/y"), "the same name on some systems"),
        (("stra\u00dfe", "STRASSE"), "the same name on some systems"),
        (("\u00e4", "a\u0308"), "there twice"),
        (("x", "x/y"), "is a file and a folder"),
        (("x/y", "X"), "the same name on some systems"),
        (("skill.MD", "x"), "the same name on some systems"),
    ],
)
def test_names_in_each_others_way_are_refused(
    folder: SkillFolder, names: tuple[str, ...], words: str
) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(*MD)
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "x")
    assert words in refused(folder, as_zip(held.getvalue()))
    assert words in refused(folder, [uploaded(*MD), *(uploaded(name, "x") for name in names)])


@pytest.mark.parametrize(
    ("kind", "words"),
    [(LINK, "is a link"), (DEVICE, "a device"), (PIPE, "a pipe"), (0o040000, "a folder with")],
)
@pytest.mark.parametrize("name", ["x", "SKILL.md", "folder/"])
def test_links_and_devices_are_refused(
    folder: SkillFolder, kind: int, words: str, name: str
) -> None:
    others = () if name == "SKILL.md" else (MD,)
    assert words in refused(folder, as_zip(zipped(*others, (special(name, kind), "/etc/passwd"))))


@pytest.mark.parametrize(
    "files",
    [
        [],
        [("skill.zip", b"not a zip")],
        [("skill.exe", b"MZ")],
        [("skill", b"")],
        [("skill.md", b"")],
        [("skill.md", b"no front matter")],
        [("skill.md", b"\xff\xfe")],
        [("skill.md", skill_md("../../x").encode())],
        [("skill.md", skill_md("a").encode() + b"x" * 70_000)],
        [("x/readme.md", b"x"), ("x/other.md", b"x")],
        [("x/SKILL.md", skill_md("x").encode()), ("y/SKILL.md", skill_md("y").encode())],
        [("SKILL.md", skill_md("a").encode()), *((f"f{number}", b"x") for number in range(6))],
        [("SKILL.md", skill_md("a").encode()), ("big", b"x" * 200_001)],
        [("SKILL.md", skill_md("a").encode()), ("b", b"x" * 199_999), ("c", b"x" * 199_999)],
    ],
    ids=lambda files: f"{len(files)}-{files[0][0] if files else ''}",
)
def test_what_is_no_skill_is_refused_with_words(
    folder: SkillFolder, files: list[tuple[str, bytes]]
) -> None:
    message = refused(folder, [uploaded(path, content) for path, content in files])
    assert 10 < len(message) < 300


def test_several_skills_at_once_are_told_apart_from_none(folder: SkillFolder) -> None:
    several = [(f"{name}/SKILL.md", skill_md(name)) for name in ("x", "y")]
    words = 'It holds several skills, in "x", "y"; upload each'
    assert words in refused(folder, as_zip(zipped(*several)))
    assert "no SKILL.md" in refused(folder, as_zip(zipped(("x/y.md", "x"))))


def test_the_one_skill_of_a_whole_project_is_found_where_it_lies(folder: SkillFolder) -> None:
    inside = [("SKILL.md", skill_md("tidy")), ("more/SKILL.md", "an example"), ("a.txt", "x")]
    deep = [(f"repo-main/skills/tidy/{path}", text) for path, text in inside]
    made = install(folder, as_zip(zipped(("repo-main/README.md", "# Repo"), *deep)))
    assert (made.name, made.found_in) == ("tidy", "repo-main/skills/tidy")
    assert [path for path, _ in folder.read_all("tidy")] == ["SKILL.md", "a.txt", "more/SKILL.md"]
    made = install(folder, as_zip(zipped(*deep)), replace=True)
    assert (made.replaced, made.found_in) == (True, "")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(folder: SkillFolder) -> None:
    bomb = zipped(MD, ("zeros", b"\0" * 9_000_000))
    tracemalloc.start()
    assert "unpacks to 9,000" in refused(folder, as_zip(bomb))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_ratio_that_no_skill_has_is_refused(tmp_path: Path) -> None:
    folder = SkillFolder(tmp_path / "skills", writable=True)
    assert "times its size" in refused(folder, as_zip(zipped(MD, ("zeros", b"\0" * 4_000_000))))


def test_a_zip_that_lies_about_its_sizes_is_refused(folder: SkillFolder) -> None:
    """The list at the end says a few bytes; the data says far more."""
    packed = bytearray(zipped(MD, ("zeros", b"\0" * 250_000)))
    size = struct.pack("<L", 250_000)
    small = struct.pack("<L", 10)
    assert packed.count(size) == 2
    message = refused(folder, as_zip(bytes(packed.replace(size, small))))
    assert message == "The zip is damaged."


def test_files_that_share_their_data_count_each(folder: SkillFolder) -> None:
    """Many entries of the list point to one and the same data, so that little unpacks to much."""
    held = io.BytesIO(zipped(MD, ("zeros", b"\0" * 100_000)))
    with zipfile.ZipFile(held, "a") as archive:
        first = archive.getinfo("zeros")
        for number in range(3):
            again = zipfile.ZipInfo(f"zeros{number}")
            for name in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                setattr(again, name, getattr(first, name))
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
        archive._didModify = True  # type: ignore[attr-defined]
    assert refused(folder, as_zip(held.getvalue()))


def test_a_list_of_files_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number in range(6_000):
            archive.writestr(zipfile.ZipInfo(f"f{number}"), "")
    folder = SkillFolder(tmp_path / "skills", writable=True)
    tracemalloc.start()
    assert "list of files" in refused(folder, as_zip(held.getvalue()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_an_archive_beyond_the_limit_is_not_opened(folder: SkillFolder) -> None:
    stored = zipped(MD, ("x", os.urandom(200_000)), method=zipfile.ZIP_STORED)
    assert "at most 200,000 are taken" in refused(folder, as_zip(stored))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(folder: SkillFolder, method: int) -> None:
    assert "packed in a way" in refused(folder, as_zip(zipped(MD, method=method)))


def test_an_encrypted_file_is_refused(folder: SkillFolder) -> None:
    packed = bytearray(zipped(MD))
    listed = packed.index(b"PK\x01\x02")
    packed[listed + 8] |= 1
    assert "is encrypted" in refused(folder, as_zip(bytes(packed)))


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_no_damage_to_a_zip_is_more_than_a_refusal(tmp_path: Path, step: int) -> None:
    whole = zipped(MD, ("x/y.txt", "text " * 20))
    for at in range(4, len(whole), step):
        folder = SkillFolder(tmp_path / "skills", writable=True)
        for broken in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            try:
                install(folder, as_zip(broken), replace=True)
            except (SkillRefused, LimitExceeded):
                continue
            # Damage to a time or a mode changes nothing of what counts.
            assert dict(folder.read_all("a"))["SKILL.md"] == MD[1].encode()
        assert [path for path in tmp_path.iterdir() if path != folder.root] == []
        assert list(folder.root.glob(".new-*")) == []


class Breaking(io.BytesIO):
    """An upload whose connection is lost in the middle."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 100_000:
            raise OSError("the connection was lost")
        return super().read(size)


def test_an_upload_that_breaks_off_leaves_nothing(folder: SkillFolder) -> None:
    files = [uploaded(*MD), UploadedFile("x", Breaking(b"x" * 190_000))]
    with pytest.raises(OSError, match="lost"):
        install(folder, files)
    assert everything_below(folder) == []
