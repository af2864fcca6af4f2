"""Skills as they are uploaded, by the page and by programs: so many at a time, of everybody."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from web.chats.skills.skill_shelf import SkillShelf
from web.harness.skills.limits import SkillLimits
from web.harness.skills.uploads import UploadedFile
from web.harness.skills.writing import Installed
from web.harness.values.errors import HarnessError, LimitExceeded
from web.ui.form_data import read_form

SKILL_UPLOADS = re.compile(r"(?:/api)?/chats/[^/]+/skills")
"""The addresses that take skills."""

MAX_UPLOAD_BYTES = SkillLimits().max_skill_bytes + 2**20
"""Of one request: the files of a skill, and what a form puts around them."""

MAX_FILES = 2_000
"""Of one request: a folder may come with hidden files that are left out."""

MAX_AT_ONCE = 4
"""Requests that bring a skill, of everybody."""

_KEPT = "Choose the folder of one skill. Nothing was changed."


class SkillUploads:
    """Reads the requests that bring skills. One for all of a server: it counts them."""

    def __init__(self) -> None:
        self._underway = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[FormData]:
        """The form with its files. Raises HarnessError, LimitExceeded where too many come."""
        if self._underway >= MAX_AT_ONCE:
            raise LimitExceeded(
                f"{MAX_AT_ONCE} skills are being uploaded to this server, its limit.",
                hint="Try again in a moment.",
            )
        self._underway += 1
        try:
            async with read_form(request, max_files=MAX_FILES, kept=_KEPT) as form:
                yield form
        finally:
            self._underway -= 1


async def installed(shelf: SkillShelf, form: FormData, *, replace: bool) -> Installed:
    """Makes a skill of the parts `file` and `folder`: one `.md`, a zip, or a folder's files, each
    by its path as its name. Raises what the skills raise for what they refuse."""
    given = [
        UploadedFile(each.filename, each.file)
        for name in ("file", "folder")
        for each in form.getlist(name)
        # A field that nothing was chosen in comes as a file without a name.
        if isinstance(each, UploadFile) and each.filename
    ]
    if not given:
        raise HarnessError("No file was chosen.", hint="Choose one first.", code="skill_refused")
    return await shelf.install(given, replace=replace)
