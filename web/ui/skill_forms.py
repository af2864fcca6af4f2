"""The forms that bring skills in, change them and switch them. What writes needs the token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.skill_kinds import DeletedSkill
from web.chats.skill_shelf import ORIGINS, SkillShelf
from web.harness.skills.limits import SkillLimits
from web.harness.skills.skill import Skill
from web.harness.skills.uploads import UploadedFile
from web.harness.skills.writing import Installed
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound
from web.ui.forms import Fields, fields_of, of_a_chat, read_form, stay, told
from web.ui.services import UiServices
from web.ui.skill_pages import edit_page, skill_address

SKILL_UPLOADS = re.compile(r"/chats/[^/]+/skills")
"""The address that takes skills."""

MAX_UPLOAD_BYTES = SkillLimits().max_skill_bytes + 2**20
"""Of one request: the files of a skill, and what a form puts around them."""

MAX_FILES = 2_000
"""Of one request: a folder may come with hidden files that are left out."""

MAX_AT_ONCE = 4
"""Requests that bring a skill, of everybody."""


def skill_form_routes(services: UiServices) -> list[Route]:
    forms = _SkillForms(services)
    return [
        Route("/chats/{chat_id}/skills", forms.install, methods=["POST"]),
        *(
            Route(
                f"/chats/{{chat_id}}/skills/{path}", of_a_chat(services, handler), methods=["POST"]
            )
            for path, handler in (
                ("restore", forms.restore),
                ("{ref}/edit", forms.edit),
                ("{ref}/delete", forms.delete),
                ("{ref}/switch", forms.switch),
            )
        ),
    ]


class _SkillForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats
        self._underway = 0

    async def install(self, request: Request) -> Response:
        """A skill from one `.md`, a zip, or the files of a folder."""
        identity = self._services.identify(request)
        chat = self._chats.get(identity, request.path_params["chat_id"])
        with self._counted():
            try:
                async with read_form(request, max_files=MAX_FILES) as form:
                    fields = fields_of(request, form)
                    self._services.check_token(fields)
                    shelf = self._chats.skills.shelf(identity)
                    installed = await _installed(
                        shelf, form, replace=fields.get("replace") == "yes"
                    )
            except HTTPException as error:
                raise _unreadable(error) from error
        await self._changed(chat)
        return told(stay(request, chat), _words(installed))

    async def edit(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A new text; one that is refused comes back as it was typed. Of a skill that this person
        may not write a copy is made."""
        self._services.check_token(fields)
        shelf, skill = await self._found(chat, request)
        text, seen = fields.get("text", ""), fields.get("seen", "")
        try:
            await shelf.do(lambda: _edited(shelf, skill, text, seen))
        except HarnessError as error:
            return await edit_page(self._services, request, chat, skill, text, error)
        await self._changed(chat)
        now = shelf.named(skill.name) or skill
        return RedirectResponse(skill_address(chat, now), 303)

    async def delete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        shelf, skill = await self._found(chat, request)
        await shelf.do(lambda: shelf.skills.delete(skill.name, skill.origin))
        await self._changed(chat, DeletedSkill(skill.name, skill.origin))
        return stay(request, chat)

    async def restore(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """Undoes a deletion, or a replacement: then the two change places."""
        self._services.check_token(fields)
        name, given = fields.get("name", ""), fields.get("origin", "")
        origin = next((each for each in ORIGINS if each == given), None)
        if origin is None:
            raise NotFound("This skill cannot be brought back any more.")
        shelf = self._chats.skills.shelf(chat.identity)
        await shelf.do(lambda: shelf.skills.restore(name, origin))
        await self._changed(chat)
        return stay(request, chat)

    async def switch(self, chat: Chat, fields: Fields, request: Request) -> Response:
        _, skill = await self._found(chat, request)
        await self._chats.switch_skill(chat, skill.name, on=fields.get("on") == "yes")
        return stay(request, chat)

    async def _found(self, chat: Chat, request: Request) -> tuple[SkillShelf, Skill]:
        shelf = await self._chats.skills.look(chat.identity)
        return shelf, shelf.find(request.path_params["ref"])

    async def _changed(self, chat: Chat, deleted: DeletedSkill | None = None) -> None:
        """Every page of this person follows; an undo is offered for what was done last."""
        self._chats.skills.shelf(chat.identity).just_deleted = deleted
        await self._chats.skills.look(chat.identity)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._underway >= MAX_AT_ONCE:
            raise LimitExceeded(
                f"{MAX_AT_ONCE} skills are being uploaded to this server, its limit.",
                hint="Try again in a moment.",
            )
        self._underway += 1
        try:
            yield
        finally:
            self._underway -= 1


async def _installed(shelf: SkillShelf, form: FormData, *, replace: bool) -> Installed:
    given = [
        UploadedFile(each.filename, each.file)
        for name in ("file", "folder")
        for each in form.getlist(name)
        # A field that nothing was chosen in comes as a file without a name.
        if isinstance(each, UploadFile) and each.filename
    ]
    if not given:
        raise HarnessError("No file was chosen.", hint="Choose one first.", code="skill_refused")
    return await shelf.do(lambda: shelf.skills.install(given, replace=replace))


def _edited(shelf: SkillShelf, skill: Skill, text: str, seen: str) -> None:
    skills = shelf.skills
    if skill.writable:
        skills.edit(skill.name, text, seen=seen, origin=skill.origin)
    else:
        skills.adopt(skill.name, text)


def _words(installed: Installed) -> str:
    done = "Replaced" if installed.replaced else "Added"
    words = f"{done} {installed.name}. Call it with /{installed.name}."
    if installed.left_out == 1:
        return f"{words} One hidden file was left out."
    return (
        f"{words} {installed.left_out} hidden files were left out." if installed.left_out else words
    )


def _unreadable(error: HTTPException) -> HarnessError:
    """What the reader of forms says of one that is too much, or not whole."""
    if "Too many files" in error.detail:
        return LimitExceeded(
            f"The folder holds more than {MAX_FILES:,} files.",
            hint="Choose the folder of one skill. Nothing was changed.",
            code="too_large",
        )
    return HarnessError(error.detail, hint="Nothing was changed.", code="bad_request")
