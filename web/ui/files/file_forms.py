"""The forms of a chat's files: delete one, bring a version back, remove all of them for good."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.actions.file_actions import delete_file, purge_file, restore_file
from web.chats.chat import Chat
from web.harness.values.errors import NotFound
from web.ui.files.file_pages import address
from web.ui.form_data import Fields
from web.ui.pages.forms import leave, of_a_chat, stay
from web.ui.services import UiServices


def file_form_routes(services: UiServices) -> list[Route]:
    forms = _FileForms(services)
    return [
        Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
        for path, handler in (
            ("restore-file", forms.restore),
            ("delete-file", forms.delete),
            ("purge-file", forms.purge),
        )
    ]


class _FileForms:
    def __init__(self, services: UiServices) -> None:
        self._chats = services.chats

    async def restore(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """Brings a version back, also of a file that was deleted."""
        path, number = fields.get("path", ""), fields.get("version", "")
        if not number.isdecimal() or len(number) > 9:
            raise NotFound("There is no such version.")
        await restore_file(self._chats, chat, path, int(number))
        return _done(request, chat, fields)

    async def delete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """The page of the file says so then, and brings it back."""
        await delete_file(self._chats, chat, fields.get("path", ""))
        return _done(request, chat, fields)

    async def purge(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await purge_file(self._chats, chat, fields.get("path", ""))
        return leave(request, f"/chats/{chat.id}/files")


def _done(request: Request, chat: Chat, fields: Fields) -> Response:
    if fields.get("from") == "page":
        return leave(request, address(chat.id, fields.get("path", "")))
    return stay(request, chat)
