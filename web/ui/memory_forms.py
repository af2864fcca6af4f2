"""The forms of what is remembered: searched, added, edited, forgotten and brought back. What writes
needs the page's token."""

from __future__ import annotations

import asyncio
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from web.chats.actions.memory_actions import add_memory, edit_memory, forget_memory, restore_memory
from web.chats.chat import Chat
from web.chats.memories.memory_shelf import Memory
from web.harness.values.errors import HarnessError, NotFound
from web.ui.errors import status_of
from web.ui.form_data import Fields
from web.ui.markdown import render, with_files
from web.ui.pages.forms import by_script, of_a_chat, stay, told
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

MARKDOWN_CHARS = 70_000
"""Of a note that is rendered; a longer one is shown as it is written."""


def memory_form_routes(services: UiServices) -> list[Route]:
    forms = _MemoryForms(services)
    base = "/chats/{chat_id}/memories"
    return [
        Route(base, forms.search, methods=["GET"]),
        Route(f"{base}/{{ref}}", forms.read, methods=["GET"]),
        *(
            Route(f"{base}{path}", of_a_chat(services, handler), methods=["POST"])
            for path, handler in (
                ("", forms.add),
                ("/switch", forms.switch),
                ("/restore", forms.restore),
                ("/{ref}", forms.edit),
                ("/{ref}/forget", forms.forget),
            )
        ),
    ]


class _MemoryForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats

    async def search(self, request: Request) -> Response:
        """The memories in which some words stand: into the panel, or without script as a page."""
        chat = self._chat(request)
        words = request.query_params.get("q", "").strip()
        shelf = await self._chats.memories.look(chat.identity)
        found = await shelf.search(words) if words else ()
        context: dict[str, Any] = {"channel": chat.id, "words": words, "found": found}
        if by_script(request):
            html = self._template("parts/memories_found").render(context)
            return HTMLResponse(html.encode(errors="replace"))
        if not words:
            context["found"] = shelf.listing.memories
        return self._page(request, "memories", chat, **context)

    async def read(self, request: Request) -> Response:
        chat = self._chat(request)
        shelf = await self._chats.memories.look(chat.identity)
        return await self._shown(request, chat, await shelf.read(request.path_params["ref"]))

    async def add(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A fact, or with a title a note."""
        self._services.check_token(fields)
        made = await add_memory(
            self._chats,
            chat,
            _text(fields),
            title=fields.get("title", ""),
            tags=_tags(fields),
        )
        words = f"Kept as the note “{made.title}”." if made.of == "note" else "Kept as a fact."
        return told(stay(request, chat), words)

    async def switch(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.switch_memory(chat, on=fields.get("on") == "yes")
        return stay(request, chat)

    async def edit(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A new text; one that is refused comes back as it was typed."""
        self._services.check_token(fields)
        ref = request.path_params["ref"]
        try:
            await edit_memory(
                self._chats,
                chat,
                ref,
                text=_text(fields),
                title=fields.get("title"),
                tags=_tags(fields),
                seen=fields.get("seen", ""),
            )
        except NotFound:
            raise
        except HarnessError as error:
            now = await self._chats.memories.shelf(chat.identity).read(ref)
            return await self._shown(request, chat, now, fields, error)
        return RedirectResponse(f"/chats/{chat.id}", 303)

    async def forget(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        await forget_memory(self._chats, chat, request.path_params["ref"])
        response = stay(request, chat)
        if by_script(request) and fields.get("found") == "yes":
            # What a search has found is no part that the stream takes away.
            response.headers["HX-Retarget"] = "closest li"
            response.headers["HX-Reswap"] = "delete"
        return response

    async def restore(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        await restore_memory(self._chats, chat, fields.get("ref", ""))
        return stay(request, chat)

    def _chat(self, request: Request) -> Chat:
        identity = self._services.identify(request)
        return self._chats.get(identity, request.path_params["chat_id"])

    async def _shown(
        self,
        request: Request,
        chat: Chat,
        memory: Memory,
        typed: Fields | None = None,
        error: HarnessError | None = None,
    ) -> Response:
        """The page of one memory, with the form that edits it; after a refusal with what was typed
        and, where it was changed meanwhile, with what stands there now."""
        shown, html = memory.shown, None
        if shown.of == "note" and not shown.fault and len(memory.text) <= MARKDOWN_CHARS:
            text = await asyncio.to_thread(render, memory.text)
            html = Markup(with_files(text, f"/chats/{chat.id}/files/"))  # noqa: S704 (sanitised)
        given = typed if typed is not None else {}
        page = {
            "memory": shown,
            "html": html,
            "text": memory.text,
            # With what stands there now, so that saving once more is to replace what is shown.
            "seen": memory.seen,
            "typed": {
                "text": _text(given) if typed is not None else memory.text,
                "title": given.get("title", shown.title),
                "tags": given.get("tags", ", ".join(shown.tags)),
            },
            "error": error,
            "changed": error is not None and error.code == "memory_changed",
        }
        status = status_of(error) if error is not None else 200
        return self._page(request, "memory", chat, status, **page)

    def _page(
        self, request: Request, name: str, chat: Chat, status: int = 200, **more: Any
    ) -> Response:
        html = self._template(f"pages/{name}").render(
            theme=theme_of(request), title="Memory", chat=chat, **more
        )
        return HTMLResponse(html.encode(errors="replace"), status)

    def _template(self, name: str) -> Any:
        return self._services.templates.get_template(f"{name}.html")


def _text(fields: Fields) -> str:
    """A browser ends lines with two characters."""
    return fields.get("text", "").replace("\r\n", "\n")


def _tags(fields: Fields) -> list[str]:
    return [tag.strip() for tag in fields.get("tags", "").split(",") if tag.strip()]
