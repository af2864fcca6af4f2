"""The forms that bring skills in, change them and switch them. What writes needs the token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from web.chats.actions.skill_actions import delete_skill, restore_skill
from web.chats.chat import Chat
from web.chats.parts.skill_kinds import DeletedSkill
from web.chats.skills.skill_shelf import ORIGINS, SkillShelf
from web.harness.skills.skill import Skill
from web.harness.skills.writing import Installed
from web.harness.tools.words import shown
from web.harness.values.errors import HarnessError, NotFound
from web.ui.form_data import Fields, fields_of
from web.ui.pages.forms import of_a_chat, stay, told
from web.ui.services import UiServices
from web.ui.skill_uploads import installed
from web.ui.skills.skill_pages import edit_page, skill_address


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

    async def install(self, request: Request) -> Response:
        """A skill from one `.md`, a zip, or the files of a folder."""
        identity = self._services.identify(request)
        chat = self._chats.get(identity, request.path_params["chat_id"])
        async with self._services.skill_uploads.read(request) as form:
            fields = fields_of(request, form)
            self._services.check_token(fields)
            shelf = self._chats.skills.shelf(identity)
            made = await installed(shelf, form, replace=fields.get("replace") == "yes")
        await self._chats.skills.look(identity)
        return told(stay(request, chat), _words(made))

    async def edit(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A new text; one that is refused comes back as it was typed. Of a skill that this person
        may not write a copy is made."""
        self._services.check_token(fields)
        shelf, skill = await self._found(chat, request)
        text, seen = fields.get("text", ""), fields.get("seen", "")
        try:
            await shelf.edit(skill, text, seen)
        except HarnessError as error:
            return await edit_page(self._services, request, chat, skill, text, error)
        await self._chats.skills.look(chat.identity)
        now = shelf.named(skill.name) or skill
        return RedirectResponse(skill_address(chat, now), 303)

    async def delete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        _, skill = await self._found(chat, request)
        await delete_skill(self._chats, chat, skill)
        return stay(request, chat)

    async def restore(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """Undoes a deletion, or a replacement: then the two change places."""
        self._services.check_token(fields)
        name, given = fields.get("name", ""), fields.get("origin", "")
        origin = next((each for each in ORIGINS if each == given), None)
        if origin is None:
            raise NotFound("This skill cannot be brought back any more.")
        await restore_skill(self._chats, chat, DeletedSkill(name, origin))
        return stay(request, chat)

    async def switch(self, chat: Chat, fields: Fields, request: Request) -> Response:
        _, skill = await self._found(chat, request)
        await self._chats.switch_skill(chat, skill.name, on=fields.get("on") == "yes")
        return stay(request, chat)

    async def _found(self, chat: Chat, request: Request) -> tuple[SkillShelf, Skill]:
        shelf = await self._chats.skills.look(chat.identity)
        return shelf, shelf.find(request.path_params["ref"])


def _words(installed: Installed) -> str:
    done = "Replaced" if installed.replaced else "Added"
    words = [f"{done} {installed.name}. Call it with /{installed.name}."]
    if installed.found_in:
        folder = shown(installed.found_in)
        words.append(f"It was found in {folder}; what lies beside that was not taken.")
    if installed.left_out == 1:
        words.append("One hidden file was left out.")
    elif installed.left_out:
        words.append(f"{installed.left_out} hidden files were left out.")
    return " ".join(words)
