"""The zip of a whole chat, unpacked: its snapshot, its files, and their versions.

It may come from anybody. Only what a chat's folder holds is taken from it, under names that mean
the same file everywhere, and no more than a chat may have.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.paths import RESERVED_FOLDER, fault_of
from web.harness.values.errors import LimitExceeded, SnapshotRefused

SNAPSHOT = f"{RESERVED_FOLDER}/record/snapshot.json"
"""Where the zip of a chat has what makes it a chat again."""

VERSIONS = f"{RESERVED_FOLDER}/versions.jsonl"
_OBJECT = re.compile(rf"{re.escape(RESERVED_FOLDER)}/objects/([0-9a-f]{{64}})")
_PIECE = 1024 * 1024
_MAX_LOG_BYTES = 64 * 1024 * 1024

_NOTHING = "Nothing was loaded. Use the zip of the whole chat as it was downloaded."


@dataclass(frozen=True, slots=True)
class PackedChat:
    """A zip that was looked through. `members` are what goes into the chat's folder."""

    archive: zipfile.ZipFile
    snapshot: bytes
    members: tuple[zipfile.ZipInfo, ...]


def is_zip(data: bytes) -> bool:
    return data.startswith(b"PK\x03\x04")


def read_packed(data: bytes, limits: FileLimits, max_snapshot_bytes: int) -> PackedChat:
    """Looks through a zip. Blocks. Raises SnapshotRefused, LimitExceeded."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise SnapshotRefused("This zip cannot be read.", hint=_NOTHING) from error
    names = [info.filename for info in members]
    if len(set(names)) < len(names) or SNAPSHOT not in names:
        raise SnapshotRefused("This zip is not that of a whole chat.", hint=_NOTHING)
    taken = tuple(info for info in members if _is_taken(info))
    _check(taken, limits)
    snapshot = b"".join(_read(archive, archive.getinfo(SNAPSHOT), max_snapshot_bytes))
    return PackedChat(archive, snapshot, taken)


def unpack(packed: PackedChat, folder: Path, limits: FileLimits) -> None:
    """Makes the folder of a new chat. Blocks; leaves nothing where it fails.

    Raises SnapshotRefused, and OSError where the disk refuses.
    """
    if not packed.members:
        return
    beside = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        for info in packed.members:
            _write(packed.archive, info, beside, limits)
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _is_taken(info: zipfile.ZipInfo) -> bool:
    name = info.filename
    if name == VERSIONS or _OBJECT.fullmatch(name):
        return True
    if name.split("/")[0] == RESERVED_FOLDER:
        return False
    if fault := fault_of(name):
        raise SnapshotRefused(f"A name in this zip is not taken: {fault}", hint=_NOTHING)
    return True


def _check(members: tuple[zipfile.ZipInfo, ...], limits: FileLimits) -> None:
    files = [info for info in members if not info.filename.startswith(f"{RESERVED_FOLDER}/")]
    kept = [info for info in members if _OBJECT.fullmatch(info.filename)]
    if len(files) > limits.max_files or len(kept) > limits.max_versions:
        raise LimitExceeded(
            f"This zip has {len(files):,} files and {len(kept):,} versions; a chat has at most "
            f"{limits.max_files:,} and {limits.max_versions:,}.",
            hint="Nothing was loaded.",
        )
    if sum(info.file_size for info in files) > limits.max_chat_bytes or (
        sum(info.file_size for info in kept) > limits.kept_bytes + limits.max_chat_bytes
    ):
        raise LimitExceeded(
            f"The files in this zip are larger than a chat's may be, {limits.max_chat_bytes:,} "
            "bytes.",
            hint="Nothing was loaded.",
        )


def _write(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, limits: FileLimits
) -> None:
    path = folder.joinpath(*info.filename.split("/"))
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    most = _MAX_LOG_BYTES if info.filename == VERSIONS else limits.max_file_bytes
    with path.open("xb") as file:
        for piece in _read(archive, info, most):
            digest.update(piece)
            file.write(piece)
    named = _OBJECT.fullmatch(info.filename)
    if named is not None and named[1] != digest.hexdigest():
        raise SnapshotRefused("A version in this zip is not what its name says.", hint=_NOTHING)


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """The data of a member, whatever size it claims to have."""
    size = 0
    try:
        with archive.open(info) as member:
            while piece := member.read(_PIECE):
                size += len(piece)
                if size > most or size > info.file_size:
                    raise LimitExceeded(
                        "A file in this zip is larger than it may be.", hint="Nothing was loaded."
                    )
                yield piece
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise SnapshotRefused("This zip is damaged or locked.", hint=_NOTHING) from error
