"""`harness-web files`: the folders of files that chats left behind, and how they are removed."""

from __future__ import annotations

import argparse
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Lists the folders of files that belong to no chat any more: which chat made each,
when it was used last, and how large it is. With --clean it removes them."""

EPILOG = """\
A chat lives in the memory of a server. Its folder is left behind when that server has
ended, or when the chat was deleted and its files were kept. One that is kept
in a store (serve --store) has its folder until it is deleted. A folder of a server that
runs now is never listed, nor one that nobody can tell whose it is while a server runs.

examples:
  harness-web files
  harness-web files --clean --older-than 30
  harness-web files --clean --yes --data-dir ~/chats

Links are not followed: what they lead to stays."""

_FOLDER = re.compile(r"[0-9A-Za-z_-]{1,64}-[0-9a-f]{12}")
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A folder without a chat. `title` is '' where it does not say; `used_at` is in seconds since
    1970, `size` in bytes."""

    folder: Path
    title: str
    used_at: float
    files: int
    size: int


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Describes `files`."""
    parser = commands.add_parser(
        "files",
        help="list and remove the files that chats left behind",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where files of chats are kept, as of 'serve' [HARNESS_WEB_DATA_DIR]",
    )
    parser.add_argument("--clean", action="store_true", help="remove what is listed, after asking")
    parser.add_argument(
        "--older-than",
        metavar="DAYS",
        type=_days,
        default=0.0,
        help="only what was not used for so many days",
    )
    parser.add_argument("--yes", action="store_true", help="with --clean: do not ask")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Lists, and removes if asked for. Returns 1 where something could not be removed."""
    from web.paths import generated_dir
    from web.settings import read_settings

    given = {"data_dir": options.data_dir} if options.data_dir else {}
    root = generated_dir(read_settings(given).data_dir)
    until = time.time() - options.older_than * _DAY_SECONDS
    found = [each for each in left_behind(root) if each.used_at <= until]
    for each in found:
        print(_line(each))
    if not found:
        print(f"Nothing was left behind in {root}.")
        return 0
    total = sum(each.size for each in found)
    print(f"{_count(len(found), 'folder')}, {_size(total)}, in {root}.")
    if not options.clean:
        print("Nothing was removed; --clean does that.")
        return 0
    if not options.yes and not _agrees(len(found)):
        print("Nothing was removed.")
        return 0
    return _remove(found, root)


def left_behind(root: Path) -> list[LeftBehind]:
    """The folders below `root` that no chat of a running server has, the longest unused first."""
    from web.chats.files.presence import running_servers

    running = running_servers(root)
    try:
        entries = [entry for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    folders = [Path(entry.path) for entry in entries if _FOLDER.fullmatch(entry.name)]
    found = [_judged(folder, running) for folder in folders]
    return sorted((each for each in found if each is not None), key=lambda each: each.used_at)


def _judged(folder: Path, running: frozenset[str]) -> LeftBehind | None:
    from web.chats.files.presence import STORED
    from web.harness.builtin.marker import read_marker

    marker = read_marker(folder)
    if not marker and running:
        # A chat that runs now may have made it this moment.
        return None
    if marker.get("server") in running | {STORED}:
        return None
    files = size = 0
    changed = folder.lstat().st_mtime
    for status in _walk(folder):
        size += status.st_size
        files += 1
        changed = max(changed, status.st_mtime)
    used = marker.get("used_at")
    used_at = max(changed, float(used)) if isinstance(used, int | float) else changed
    title = marker.get("title")
    return LeftBehind(folder, title if isinstance(title, str) else "", used_at, files, size)


def _walk(folder: Path) -> Iterator[os.stat_result]:
    """The plain files below a folder, what is kept about them included; no link is followed."""
    for parent, _, names in os.walk(folder, followlinks=False):
        for name in names:
            status = os.lstat(os.path.join(parent, name))
            if stat.S_ISREG(status.st_mode):
                yield status


def _remove(found: list[LeftBehind], root: Path) -> int:
    from web.chats.files.folders import remove_folder

    failed = removed = 0
    # A server may have been started, and a person may have thought for long.
    still = {each.folder for each in left_behind(root)}
    for each in found:
        if each.folder not in still:
            continue
        try:
            remove_folder(each.folder)
            removed += 1
        except OSError as error:
            failed += 1
            print(f"harness-web: {each.folder} stays: {error.strerror}.", file=sys.stderr)
    print(f"Removed {_count(removed, 'folder')}.")
    return 1 if failed else 0


def _agrees(count: int) -> bool:
    """Whether the person says yes; where nobody can, no."""
    if not sys.stdin.isatty():
        print("Add --yes to remove without being asked.")
        return False
    return input(f"Remove {_count(count, 'folder')} for good? [y/N] ").strip().lower() in (
        "y",
        "yes",
    )


def _line(each: LeftBehind) -> str:
    day = datetime.fromtimestamp(each.used_at).strftime("%Y-%m-%d")
    title = "".join(char if char.isprintable() else " " for char in each.title) or "(no title)"
    size, files = _size(each.size), _count(each.files, "file")
    return f"{day}  {size:>9}  {files:>9}  {each.folder.name}  {title}"


def _size(size: int) -> str:
    from web.harness.values.text import amount

    return amount(size)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what if number == 1 else what + 's'}"


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < 100_000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of days")
    return days
