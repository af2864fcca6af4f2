"""The skills of one person: those put in by this person, the server's own, and the samples."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from web.harness.skills import writing
from web.harness.skills.folder import SkillFolder
from web.harness.skills.limits import SkillLimits
from web.harness.skills.names import SKILL_FILE
from web.harness.skills.skill import Skill, SkillOrigin, SkillText, read_skill
from web.harness.skills.uploads import UploadedFile
from web.harness.skills.writing import Installed
from web.harness.tools.words import did_you_mean, shown
from web.harness.values.errors import NotFound, SkillRefused

UPLOADS = ".of"
"""Below the server's own skills: one folder for each identity."""


class Skills:
    """What one person sees of several folders; the first folder that has a name rules.

    A broken skill is listed and hides no whole one. `origin` narrows a call to one kind of folder,
    which is needed where a broken skill and a whole one share a name. All methods block; they raise
    NotFound, SkillRefused, LimitExceeded, and OSError for what the disk refuses.
    """

    def __init__(self, folders: Sequence[SkillFolder]) -> None:
        self._folders = tuple(folders)

    def list(self) -> tuple[Skill, ...]:
        """Whole and broken skills by name, without those that another one stands before."""
        listed: list[Skill] = []
        whole: set[str] = set()
        for folder in self._folders:
            found = [skill for skill in folder.skills() if skill.fault or skill.name not in whole]
            whole.update(skill.name for skill in found if not skill.fault)
            listed += found
        return tuple(sorted(listed, key=lambda skill: (skill.name, bool(skill.fault))))

    def usable(self, off: Collection[str] = ()) -> tuple[Skill, ...]:
        """The whole ones, less those that are switched off."""
        return tuple(skill for skill in self.list() if not skill.fault and skill.name not in off)

    def get(self, name: str, origin: SkillOrigin | None = None) -> Skill:
        """The whole skill of this name, or else the broken one."""
        return self._find(name, origin)[1]

    def read(self, name: str, origin: SkillOrigin | None = None) -> SkillText:
        """A skill with its text and the list of its further files; a broken one to be mended."""
        folder, _ = self._find(name, origin)
        return folder.read(name)

    def read_file(
        self, name: str, path: str, *, limit: int | None = None, origin: SkillOrigin | None = None
    ) -> bytes:
        """One file of a skill, by its path from the skill's folder, of at most `limit` bytes."""
        folder, _ = self._find(name, origin)
        return folder.read_file(name, path, limit)

    def read_all(self, name: str) -> Sequence[tuple[str, bytes]]:
        """Path and content of every file of a whole skill."""
        folder, _ = self._find(name, None)
        return folder.read_all(name)

    def install(self, files: Sequence[UploadedFile], *, replace: bool = False) -> Installed:
        """Makes a skill of this person's own from one `.md`, the files of a folder, or a zip."""
        folder = self._writable()[0]
        return writing.install(folder, files, replace=replace)

    def adopt(self, name: str, text: str | None = None) -> Installed:
        """Copies a whole skill to this person's own, where it can be edited and stands before the
        one it comes from; deleting the copy brings that one back. `text` is put in the place of its
        `SKILL.md`."""
        files = dict(self.read_all(name))
        if text is not None:
            read_skill(text, name)
            files[SKILL_FILE] = text.encode("utf-8", "surrogatepass")
        return self.install(
            [UploadedFile(f"{name}/{path}", io.BytesIO(content)) for path, content in files.items()]
        )

    def edit(
        self, name: str, text: str, *, seen: str = "", origin: SkillOrigin | None = None
    ) -> Skill:
        """Replaces a skill's `SKILL.md`; `seen` is the `sha256` of the one that was edited."""
        folder = self._owner(name, origin)
        writing.edit(folder, name, text, seen=seen)
        return folder.find(name) or self.get(name)

    def delete(self, name: str, origin: SkillOrigin | None = None) -> None:
        """Takes a skill away; `restore` brings it back."""
        writing.delete(self._owner(name, origin), name)

    def restore(self, name: str, origin: SkillOrigin | None = None) -> Skill:
        """Undoes the last `delete` or replacement of this name."""
        for folder in self._writable():
            if origin in (None, folder.origin) and name in writing.deleted(folder):
                writing.restore(folder, name)
                return folder.find(name) or self.get(name)
        raise NotFound(f"There is no deleted skill {shown(name)}.")

    def deleted(self, origin: SkillOrigin | None = None) -> tuple[str, ...]:
        """The names that `restore` takes."""
        folders = [folder for folder in self._writable() if origin in (None, folder.origin)]
        return tuple(name for folder in folders for name in writing.deleted(folder))

    def _find(self, name: str, origin: SkillOrigin | None) -> tuple[SkillFolder, Skill]:
        found = [
            (folder, skill)
            for folder in self._folders
            if origin in (None, folder.origin) and (skill := folder.find(name)) is not None
        ]
        for folder, skill in found:
            if not skill.fault:
                return folder, skill
        if found:
            return found[0]
        near = did_you_mean(name, (skill.name for skill in self.usable()))
        raise NotFound(f"There is no skill {shown(name)}.{near}")

    def _writable(self) -> Sequence[SkillFolder]:
        folders = [folder for folder in self._folders if folder.writable]
        if not folders:
            raise SkillRefused("Skills cannot be put in here.", code="skill_read_only")
        return folders

    def _owner(self, name: str, origin: SkillOrigin | None) -> SkillFolder:
        """The first folder that has this skill and may be written, else one that refuses."""
        having = [
            folder
            for folder in self._folders
            if origin in (None, folder.origin) and folder.find(name) is not None
        ]
        if not having:
            raise NotFound(f"There is no skill {shown(name)}.")
        return next((folder for folder in having if folder.writable), having[0])


class SkillLibrary:
    """All skills of a server: `own` is its folder of skills, `samples` come with the program.

    Uploads lie below `own`, in a folder named from the whole identity, which nobody else's `Skills`
    looks at. `own_writable` lets people change the server's own skills, which suits a server with
    one person. Samples are never written. One small object is kept for each identity seen.
    """

    def __init__(
        self,
        own: Path,
        samples: Path | None = None,
        *,
        own_writable: bool = False,
        limits: SkillLimits | None = None,
    ) -> None:
        self._limits = limits or SkillLimits()
        self._own = own
        self._shared = [
            SkillFolder(own, origin="server", writable=own_writable, limits=self._limits)
        ]
        # In a checkout the samples are the server's own skills.
        if samples is not None and samples.resolve() != own.resolve():
            self._shared.append(SkillFolder(samples, origin="sample", limits=self._limits))
        self._uploads: dict[str, SkillFolder] = {}
        self._making = threading.Lock()

    def of(self, tenant_id: str, user_id: str) -> Skills:
        """The skills of one person. The same identity always gets the same folders and locks."""
        name = identity_folder(tenant_id, user_id)
        with self._making:
            folder = self._uploads.get(name)
            if folder is None:
                place = self._own / UPLOADS / name
                folder = SkillFolder(place, origin="upload", writable=True, limits=self._limits)
                self._uploads[name] = folder
        return Skills([folder, *self._shared])


def identity_folder(tenant_id: str, user_id: str) -> str:
    """A name that two identities share only if both of their parts are the same."""
    whole = json.dumps([tenant_id, user_id])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
