"""Skills as tests write them."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

from web.harness.skills.uploads import UploadedFile


def skill_md(name: str, description: str = "Does a thing.", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def put(root: Path, name: str, text: str | None = None, **files: str) -> Path:
    """A skill in a folder; further files by name, with `__` for a slash and `_` for a dot."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_md(name) if text is None else text)
    for path, content in files.items():
        place = folder / path.replace("__", "/").replace("_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return folder


def upload(**contents: str | bytes) -> list[UploadedFile]:
    """The files of a chosen folder, by path with `__` for a slash and `_` for a dot."""
    return [
        uploaded(path.replace("__", "/").replace("_", "."), content)
        for path, content in contents.items()
    ]


def uploaded(path: str, content: str | bytes) -> UploadedFile:
    return UploadedFile(path, io.BytesIO(content.encode() if isinstance(content, str) else content))


def zipped(
    *entries: tuple[str | zipfile.ZipInfo, str | bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """A zip with these entries, in this order."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return held.getvalue()


def special(name: str, kind: int) -> zipfile.ZipInfo:
    """An entry that says it is a link, a device or the like."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (kind | 0o777) << 16
    return info


LINK, DEVICE, PIPE = stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO
