"""Skills put into a folder, edited, taken away and brought back.

A skill is there whole or not at all, also after a crash. What is under way or deleted lies beside
the skills, under names that begin with a dot. Several servers may write to one folder.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from web.harness.skills import disk
from web.harness.skills.folder import SkillFolder, sayable_name
from web.harness.skills.limits import SkillLimits
from web.harness.skills.names import SKILL_FILE
from web.harness.skills.places import DELETED, STAGING_PREFIX, bring, set_aside, spare, sweep
from web.harness.skills.skill import decoded, read_skill
from web.harness.skills.uploads import Upload, UploadedFile, read_upload
from web.harness.tools.beneath import FILE_MODE, FOLDER_MODE, flush_names
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, NotFound, SkillRefused


class Installed(NamedTuple):
    """What an upload became. `left_out` counts hidden files that were not taken; `found_in` is the
    folder that it lay in where other things lay beside it, which were not taken either."""

    name: str
    left_out: int
    replaced: bool
    found_in: str = ""


def install(
    folder: SkillFolder, files: Sequence[UploadedFile], *, replace: bool = False
) -> Installed:
    """Makes a skill from one `.md`, the files of a folder, or a zip.

    With `replace`, a skill of that name goes where deleted ones go. Raises SkillRefused that says
    what is wrong, LimitExceeded, and OSError. Nothing is left of what was refused.
    """
    _refuse_read_only(folder)
    with read_upload(files, folder.limits) as upload, _staged(folder) as staging:
        _unpack(upload, staging, folder.limits)
        content = (staging / SKILL_FILE).read_bytes()
        if len(content) > folder.limits.max_skill_md_bytes:
            raise _too_large(SKILL_FILE, folder.limits.max_skill_md_bytes)
        name = read_skill(decoded(content))[0].name
        with folder.changing():
            there = os.path.lexists(folder.root / name)
            if there and not replace:
                raise SkillRefused(
                    f"There is a skill {shown(name)} already.",
                    hint="Replace it, or change the name in the front matter.",
                    code="skill_exists",
                )
            if not there and len(folder.skills()) >= folder.limits.max_skills:
                raise LimitExceeded(
                    f"There are {folder.limits.max_skills:,} skills, which is the limit.",
                    hint="Delete one first.",
                )
            if there:
                bring(folder.root, staging, name, folder.limits.kept_deleted)
            else:
                staging.rename(folder.root / name)
            flush_names(folder.root)
    return Installed(name, upload.left_out, there, upload.found_in)


def edit(folder: SkillFolder, name: str, text: str, *, seen: str = "") -> None:
    """Replaces the `SKILL.md` of a skill.

    `seen` is the SHA-256 of the text that was edited; where another one stands there by now, that
    is refused (`skill_changed`). Raises NotFound, SkillRefused for a text that would break the
    skill, LimitExceeded, and OSError.
    """
    _refuse_read_only(folder)
    content = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    if len(content) > folder.limits.max_skill_md_bytes:
        raise _too_large(SKILL_FILE, folder.limits.max_skill_md_bytes)
    read_skill(decoded(content), name)
    with folder.changing(), folder.opened(folder.name_on_disk(name)) as inner:
        if seen and seen != _digest_now(inner, folder.limits):
            raise SkillRefused(
                f"The skill {shown(name)} was changed meanwhile.",
                hint="Your text is not saved. Look at the skill as it is now.",
                code="skill_changed",
            )
        temporary = f"{STAGING_PREFIX}{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o600, dir_fd=inner), "wb") as file:
                file.write(content)
                _finish(file)
            os.replace(temporary, SKILL_FILE, src_dir_fd=inner, dst_dir_fd=inner)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=inner)
            raise
        os.fsync(inner)


def delete(folder: SkillFolder, name: str) -> None:
    """Takes a skill away, whole or broken; `restore` brings it back. Raises NotFound, OSError."""
    _refuse_read_only(folder)
    with folder.changing():
        set_aside(folder.root, folder.name_on_disk(name), folder.limits.kept_deleted)
        flush_names(folder.root)


def restore(folder: SkillFolder, name: str) -> None:
    """Brings back what was deleted or replaced last under this name.

    A skill that stands there now changes places with it. Raises NotFound, LimitExceeded, OSError.
    """
    _refuse_read_only(folder)
    with folder.changing():
        on_disk = _deleted(folder).get(name)
        if on_disk is None:
            raise NotFound(f"There is no deleted skill {shown(name)}.")
        there = os.path.lexists(folder.root / on_disk)
        if not there and len(folder.skills()) >= folder.limits.max_skills:
            raise LimitExceeded(
                f"There are {folder.limits.max_skills:,} skills, which is the limit."
            )
        source = folder.root / DELETED / on_disk
        bring(folder.root, source, on_disk, folder.limits.kept_deleted)
        flush_names(folder.root)


def deleted(folder: SkillFolder) -> tuple[str, ...]:
    """The names that `restore` takes."""
    folder.mend()
    return tuple(sorted(_deleted(folder)))


def _deleted(folder: SkillFolder) -> dict[str, str]:
    """How they are called on disk, by their names as they are said."""
    try:
        return {sayable_name(each): each for each in os.listdir(folder.root / DELETED)}
    except OSError:
        return {}


def _unpack(upload: Upload, staging: Path, limits: SkillLimits) -> None:
    """Writes the files of an upload into an empty folder that nobody else knows."""
    total = 0
    for entry in upload.entries:
        place = staging.joinpath(*entry.names)
        place.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        size = 0
        with place.open("xb") as file:
            for chunk in entry.chunks():
                size += len(chunk)
                total += len(chunk)
                if size > limits.max_file_bytes:
                    raise _too_large("/".join(entry.names), limits.max_file_bytes)
                if total > limits.max_skill_bytes:
                    raise _too_large("The skill", limits.max_skill_bytes)
                file.write(chunk)
            _finish(file)


def _finish(file: BinaryIO) -> None:
    """Gives a new file its mode, whatever the umask is, and its bytes a place on the disk."""
    file.flush()
    os.fchmod(file.fileno(), FILE_MODE)
    os.fsync(file.fileno())


@contextmanager
def _staged(folder: SkillFolder) -> Iterator[Path]:
    """A folder beside the skills for one that is being made; gone at the end unless renamed."""
    folder.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    sweep(folder.root)
    with spare(folder.root) as staging:
        staging.chmod(FOLDER_MODE)
        yield staging


def _digest_now(folder: int, limits: SkillLimits) -> str:
    with suppress(NotFound, SkillRefused, LimitExceeded):
        content = disk.read_file(folder, (SKILL_FILE,), limits.max_skill_md_bytes)
        return hashlib.sha256(content).hexdigest()
    return ""


def _refuse_read_only(folder: SkillFolder) -> None:
    if not folder.writable:
        raise SkillRefused(
            "The skills of this folder cannot be changed here.",
            hint="Upload a skill of the same name: it takes the place of this one for you.",
            code="skill_read_only",
        )


def _too_large(what: str, limit: int) -> LimitExceeded:
    return LimitExceeded(f"{what} is larger than {limit:,} bytes.", code="too_large")
