"""What a person uploads as a skill: one `.md`, the files of a folder, or a zip of them.

Nothing here writes. Paths are checked before anything is read, and content comes in pieces, so that
whoever writes it can stop at a limit.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, NamedTuple

from web.harness.skills.archive import ArchiveFile
from web.harness.skills.limits import SkillLimits
from web.harness.skills.names import LITTER, SKILL_FILE, fault_of_name, parse_file_path
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, SkillRefused

CHUNK_BYTES = 1 << 16
MIN_RATIO_BYTES = 1 << 20
"""Less than this may unpack from as little as it likes."""

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 0x1
_NAMED = 5
"""Of the skills in an upload that holds several."""


class UploadedFile(NamedTuple):
    """A file as it came: its name, or its path below the folder that was chosen, with `/`."""

    path: str
    content: BinaryIO
    """Read from its present place; a zip must be seekable."""


@dataclass(frozen=True, slots=True)
class UploadEntry:
    """A file of the skill to be: the names of its path, and its content in pieces."""

    names: tuple[str, ...]
    chunks: Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Upload:
    """Entries whose paths fit together, `SKILL.md` among them.

    `left_out` counts hidden files and what systems put beside others'. `archive_bytes` is the size
    of the zip they come from, 0 where there is none. `found_in` is the folder that they are all of,
    where more lay beside it, else ''.
    """

    entries: tuple[UploadEntry, ...]
    left_out: int = 0
    archive_bytes: int = 0
    found_in: str = ""


@contextmanager
def read_upload(files: Sequence[UploadedFile], limits: SkillLimits) -> Iterator[Upload]:
    """What these files would make; its entries can be read while the block lasts.

    Raises SkillRefused that says what is wrong, or LimitExceeded.
    """
    if not files:
        raise SkillRefused("No file was chosen.")
    with ExitStack() as stack:
        if len(files) > 1 or "/" in files[0].path:
            pairs = [(file.path, partial(_pieces, file.content)) for file in files]
            yield _upload(pairs, limits)
            return
        file = files[0]
        start = file.content.read(4)
        file.content.seek(-len(start), 1)
        if start in _ZIP_STARTS:
            yield _unzipped(file.content, limits, stack)
        elif file.path.casefold().endswith(".md"):
            yield Upload((UploadEntry((SKILL_FILE,), partial(_pieces, file.content)),))
        elif file.path.casefold().endswith(".zip"):
            raise SkillRefused(f"{shown(file.path)} is not a zip.")
        else:
            raise SkillRefused(f"{shown(file.path)} is neither a .md, nor a zip, nor a folder.")


def _upload(
    pairs: Iterable[tuple[str, Callable[[], Iterator[bytes]]]],
    limits: SkillLimits,
    archive_bytes: int = 0,
) -> Upload:
    entries: list[UploadEntry] = []
    left_out = 0
    for path, chunks in pairs:
        if _is_litter(path):
            left_out += 1
            continue
        entries.append(UploadEntry(parse_file_path(path), chunks))
        if len(entries) > limits.max_files:
            raise LimitExceeded(
                f"The skill holds more than {limits.max_files:,} files.", code="too_large"
            )
    _refuse_collisions(entries)
    folder = _folder_of_skill(entries)
    inside = tuple(
        UploadEntry(entry.names[len(folder) :], entry.chunks)
        for entry in entries
        if entry.names[: len(folder)] == folder
    )
    beside = "/".join(folder) if len(inside) < len(entries) else ""
    return Upload(inside, left_out, archive_bytes, beside)


def _is_litter(path: str) -> bool:
    """Whether it is hidden, or put there by a system. Never so for a path that must be refused."""
    names = path.split("/")
    hidden = [name.startswith(".") and not fault_of_name(name[1:]) for name in names]
    litter = [name.casefold() in LITTER for name in names]
    return not {"", ".", ".."} & set(names) and any(hidden + litter)


def _folder_of_skill(entries: list[UploadEntry]) -> tuple[str, ...]:
    """The folder that the one `SKILL.md` lies in, wherever that is: a download of a whole project
    has it deep down."""
    paths = {entry.names for entry in entries}
    every = sorted(names[:-1] for names in paths if names[-1] == SKILL_FILE)
    # One within another is a file of it like any other.
    found = [each for each in every if not any(each[:n] in every for n in range(len(each)))]
    if not found:
        raise SkillRefused("There is no SKILL.md in it.")
    if len(found) > 1:
        named = ", ".join(shown("/".join(folder)) for folder in found[:_NAMED])
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise SkillRefused(
            f"It holds several skills, in {named}{more}; upload each of them by itself."
        )
    return found[0]


def _refuse_collisions(entries: list[UploadEntry]) -> None:
    """Two paths are one and the same file on some systems; a file cannot be a folder as well."""
    known: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = {}
    for entry in entries:
        for length in range(1, len(entry.names) + 1):
            part = entry.names[:length]
            mine = (part, length == len(entry.names))
            other = known.setdefault(tuple(name.casefold() for name in part), mine)
            if other is mine:
                continue
            if other != mine:
                raise SkillRefused(
                    f"{shown('/'.join(part))} and {shown('/'.join(other[0]))} are the same name on "
                    "some systems."
                    if other[0] != part
                    else f"{shown('/'.join(part))} is a file and a folder."
                )
            if mine[1]:
                raise SkillRefused(f"{shown('/'.join(part))} is there twice.")


def _pieces(content: BinaryIO) -> Iterator[bytes]:
    while chunk := content.read(CHUNK_BYTES):
        yield chunk


def _unzipped(content: BinaryIO, limits: SkillLimits, stack: ExitStack) -> Upload:
    content.seek(0, 2)
    size = content.tell()
    if size > limits.max_archive_bytes:
        raise LimitExceeded(
            f"The zip has {size:,} bytes; at most {limits.max_archive_bytes:,} are taken.",
            code="too_large",
        )
    with damage_in_words():
        archive = stack.enter_context(
            zipfile.ZipFile(ArchiveFile(content, limits.max_directory_bytes))
        )
    infos = [info for info in archive.infolist() if not _is_folder(info)]
    for info in infos:
        _refuse_odd(info)
    unpacked = sum(info.file_size for info in infos)
    if unpacked > limits.max_skill_bytes:
        raise LimitExceeded(
            f"The zip unpacks to {unpacked:,} bytes; at most {limits.max_skill_bytes:,} are taken.",
            code="too_large",
        )
    if unpacked > max(MIN_RATIO_BYTES, size * limits.max_ratio):
        raise SkillRefused(
            f"The zip unpacks to {unpacked // size:,} times its size, which no skill does; "
            f"the limit is {limits.max_ratio}."
        )
    pairs = [(info.filename, partial(_unpacked, archive, info)) for info in infos]
    return _upload(pairs, limits, size)


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with damage_in_words(), archive.open(info) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _is_folder(info: zipfile.ZipInfo) -> bool:
    """Whether it is a folder and nothing else: an empty entry whose name ends with a slash."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return info.filename.endswith("/") and not info.file_size and kind in (0, stat.S_IFDIR)


def _refuse_odd(info: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        fault = "is a link"
    elif kind not in (0, stat.S_IFREG):
        fault = "is a folder with content, a device, a pipe or a socket"
    elif info.flag_bits & _ENCRYPTED:
        fault = "is encrypted"
    elif info.compress_type not in _METHODS:
        fault = "is packed in a way that is not taken"
    elif "\0" in info.orig_filename:
        fault = "has a NUL in its name"
    else:
        return
    raise SkillRefused(f"{shown(info.orig_filename)} in the zip {fault}.")


@contextmanager
def damage_in_words() -> Iterator[None]:
    """A zip may be wrong in every way that bytes can be; the library has an error for each."""
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
        *(ValueError, OverflowError, IndexError, OSError),
    ) as error:
        raise SkillRefused("The zip is damaged.") from error
