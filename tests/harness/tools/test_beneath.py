"""What is opened below a folder. How it holds against whoever swaps files and folders meanwhile is
tested where it is used: in the files of a chat and in skills."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from web.harness.tools.beneath import chunks_of, folder_below, open_plain
from web.harness.values.errors import NotFound, ToolError


@pytest.fixture
def start(tmp_path: Path) -> Iterator[int]:
    """The folder `tmp_path/root`, open."""
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "x.txt").write_text("own")
    descriptor = os.open(tmp_path / "root", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def opened(tmp_path: Path) -> list[str]:
    """The files and folders below `tmp_path` that this process has open."""
    links = map(os.path.realpath, Path("/proc/self/fd").iterdir())
    return sorted(os.path.relpath(link, tmp_path) for link in links if str(tmp_path) in link)


def test_a_file_some_folders_down_is_read_and_all_is_closed(start: int, tmp_path: Path) -> None:
    with folder_below(start, ("a", "b"), "a/b/x.txt") as folder:
        descriptor = open_plain(folder, "x.txt", "a/b/x.txt")
        assert opened(tmp_path) == ["root", "root/a/b", "root/a/b/x.txt"]
    assert b"".join(chunks_of(descriptor)) == b"own"
    os.close(descriptor)
    assert opened(tmp_path) == ["root"]


def test_folders_are_made_only_where_that_is_wished(start: int, tmp_path: Path) -> None:
    with pytest.raises(NotFound), folder_below(start, ("a", "c", "d"), "a/c/d/x"):
        pass
    assert not (tmp_path / "root" / "a" / "c").exists()
    with folder_below(start, ("a", "c", "d"), "a/c/d/x", create=True):
        assert (tmp_path / "root" / "a" / "c" / "d").is_dir()


@pytest.mark.parametrize("create", [False, True])
def test_no_link_and_no_file_on_the_way_is_entered(
    start: int, tmp_path: Path, create: bool
) -> None:
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    (tmp_path / "root" / "file").touch()
    for names in (("link",), ("link", "root"), ("file",), ("file", "x")):
        with (
            pytest.raises(ToolError, match="is a link or a file"),
            folder_below(start, names, "x/y", create=create),
        ):
            pass
    assert opened(tmp_path) == ["root"]


def test_a_file_with_a_second_name_is_opened_only_where_that_is_wished(
    start: int, tmp_path: Path
) -> None:
    os.link(tmp_path / "root" / "a" / "b" / "x.txt", tmp_path / "root" / "hard")
    with pytest.raises(ToolError, match="hard link"):
        open_plain(start, "hard", "hard")
    descriptor = open_plain(start, "hard", "hard", linked=True)
    assert b"".join(chunks_of(descriptor)) == b"own"
    os.close(descriptor)


@pytest.mark.parametrize("linked", [False, True])
def test_nothing_but_plain_files_is_opened(start: int, tmp_path: Path, linked: bool) -> None:
    (tmp_path / "root" / "link").symlink_to("a/b/x.txt")
    os.mkfifo(tmp_path / "root" / "pipe")
    for name, words in (("link", "is a link"), ("pipe", "device, pipe"), ("a", "is a folder")):
        with pytest.raises(ToolError, match=words):
            open_plain(start, name, name, linked=linked)
    with pytest.raises(NotFound):
        open_plain(start, "none", "none", linked=linked)
    assert opened(tmp_path) == ["root"]
