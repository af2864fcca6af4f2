"""Skills that change places, each there whole or not at all, also after a crash.

What takes the place of another lies in `.coming`, under the name it will have, before that one is
set aside. So none is ever lost: whoever finds something there later ends what was begun.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web.harness.tools.beneath import FOLDER_MODE

COMING = ".coming"
DELETED = ".deleted"
STAGING_PREFIX = ".new-"
ABANDONED_SECONDS = 3600
"""So old, what was under way belongs to a process that died."""


def bring(root: Path, source: Path, name: str, kept: int) -> None:
    """Puts what lies at `source`, below the same root, where `name` stands. What stands there is
    set aside. Whoever calls it has the folder for itself."""
    coming = root / COMING
    coming.mkdir(mode=FOLDER_MODE, exist_ok=True)
    source.rename(coming / name)
    finish(root, kept)


def finish(root: Path, kept: int) -> None:
    """Ends what was begun by `bring`, also by a process that died in the middle of it."""
    coming = root / COMING
    try:
        names = os.listdir(coming)
    except FileNotFoundError:
        return
    for name in names:
        if os.path.lexists(root / name):
            set_aside(root, name, kept)
        (coming / name).rename(root / name)
    with suppress(OSError):
        coming.rmdir()


def set_aside(root: Path, name: str, kept: int) -> None:
    """Moves what stands under this name to the deleted ones, of which the newest are kept."""
    place = root / DELETED
    place.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if os.path.lexists(place / name):
        _discard(root, place / name)
    (root / name).rename(place / name)
    # A rename keeps the folder's own time; the order of deletion is wanted.
    os.utime(place / name, follow_symlinks=False)
    by_age = sorted(place.iterdir(), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
    for old in by_age[kept:]:
        _discard(root, old)


@contextmanager
def spare(root: Path) -> Iterator[Path]:
    """A folder beside the skills, gone at the end unless renamed."""
    made = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=root))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def sweep(root: Path) -> None:
    """Removes what a process that died had under way."""
    for path in root.glob(f"{STAGING_PREFIX}*"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                _remove(path)


def _discard(root: Path, path: Path) -> None:
    """Removes it, for all who look at once: nobody ever finds a part of it in its place."""
    with spare(root) as out_of_sight:
        path.rename(out_of_sight / "gone")


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)
