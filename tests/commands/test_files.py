"""`harness-web files`: what it lists, and what it removes."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from web.__main__ import main
from web.chats.files.presence import STORED, Presence
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.versions import Origin

DIGEST = "-0123456789ab"


def make(data_dir: Path, chat: str, *, server: str = "", title: str = "Trip") -> Path:
    """The folder of a chat with one file, marked as the chat of a server."""
    folder = data_dir / "generated" / (chat + DIGEST)

    async def work() -> None:
        files = ChatFiles(folder)
        await files.write("a.txt", b"words", Origin("person"), replace=False)
        await files.mark({"chat": chat, "title": title, "server": server, "used_at": time.time()})

    asyncio.run(work())
    return folder


def run(data_dir: Path, *options: str) -> int:
    return main(["files", "--data-dir", str(data_dir), *options])


def test_folders_without_a_chat_are_listed_and_nothing_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path, "c1", title="A\x1b[31m trip")
    assert run(tmp_path) == 0
    told = capsys.readouterr().out
    assert folder.name in told
    assert "A [31m trip" in told
    assert "Nothing was removed" in told
    assert (folder / "a.txt").exists()


def test_a_folder_of_a_running_server_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Presence(tmp_path / "generated")
    server.begin()
    used, unmarked = make(tmp_path, "used", server=server.token), make(tmp_path, "unmarked")
    (unmarked / ".harness" / "chat.json").unlink()
    left = make(tmp_path, "left", server="another")
    assert run(tmp_path, "--clean", "--yes") == 0
    assert (used.exists(), unmarked.exists(), left.exists()) == (True, True, False)
    server.end()
    capsys.readouterr()
    assert run(tmp_path, "--clean", "--yes") == 0
    assert (used.exists(), unmarked.exists()) == (False, False)


def test_the_folder_of_a_chat_in_a_store_is_left_alone_without_a_server(tmp_path: Path) -> None:
    stored, left = make(tmp_path, "stored", server=STORED), make(tmp_path, "left")
    assert run(tmp_path, "--clean", "--yes") == 0
    assert (stored.exists(), left.exists()) == (True, False)


def test_links_are_not_followed_and_other_things_stay(tmp_path: Path) -> None:
    folder = make(tmp_path, "c1")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("stays")
    (folder / "link").symlink_to(outside)
    generated = tmp_path / "generated"
    (generated / f"linked{DIGEST}").symlink_to(outside)
    (generated / "README.md").write_text("stays")
    (generated / "my own folder").mkdir()
    assert run(tmp_path, "--clean", "--yes") == 0
    assert not folder.exists()
    assert (outside / "precious.txt").read_text() == "stays"
    assert {each.name for each in generated.iterdir()} == {
        f"linked{DIGEST}", "README.md", "my own folder"
    }  # fmt: skip


def test_what_was_used_lately_stays_where_an_age_is_given(tmp_path: Path) -> None:
    old, new = make(tmp_path, "old"), make(tmp_path, "new")
    long_ago = time.time() - 40 * 86_400
    marker = old / ".harness" / "chat.json"
    marker.write_text(f'{{"server": "", "used_at": {long_ago}}}')
    for path in [old, *old.rglob("*")]:
        os.utime(path, (long_ago, long_ago))
    assert run(tmp_path, "--clean", "--yes", "--older-than", "30") == 0
    assert (old.exists(), new.exists()) == (False, True)


def test_where_nobody_can_be_asked_nothing_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path, "c1")
    assert run(tmp_path, "--clean") == 0
    assert "Add --yes" in capsys.readouterr().out
    assert folder.exists()


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, "--older-than", "soon")
    assert ended.value.code == 2
