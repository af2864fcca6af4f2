"""The pages of a skill: its text rendered, the files beside it, and the form that edits it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.skills.skill_shelf import SkillShelf, ref_of
from web.harness.skills.names import SKILL_FILE
from web.harness.skills.skill import Skill
from web.harness.values.errors import HarnessError
from web.ui.errors import status_of
from web.ui.markdown import render, with_files
from web.ui.markdown.code import plain_code
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

SHOWN_CHARS = 200_000
"""Of a file of a skill."""
MARKDOWN_CHARS = 70_000
"""Of a text that is rendered; a longer one is shown as it is written."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as a page shows it: rendered markdown, or text, or for binary data only its size.

    `size` is in bytes. The text is cut at a limit, and then `more` is so many characters longer. In
    it, what would turn around the text beside it is told apart.
    """

    path: str
    size: int
    html: Markup | None = None
    text: Markup | None = None
    more: int = 0


def skill_page_routes(services: UiServices) -> list[Route]:
    async def read(request: Request) -> Response:
        chat, shelf, skill = await _found(services, request)
        path = request.path_params["path"]
        text, fault = await shelf.read(skill)
        file = None
        if path != SKILL_FILE:
            content = await shelf.do(
                lambda: shelf.skills.read_file(skill.name, path, origin=skill.origin)
            )
            file = await _shown(path, content)
        elif text is not None:
            # A broken skill has no body: then the whole file is shown, to find the fault in.
            file = await _shown_text(path, text.body if not skill.fault else text.source)
        page = {"text": text, "file": file, "fault": skill.fault or fault}
        return _page(services, request, "skill", chat, skill, page)

    async def edit(request: Request) -> Response:
        chat, _, skill = await _found(services, request)
        return await edit_page(services, request, chat, skill)

    return [
        Route("/chats/{chat_id}/skills/{ref}/files/{path:path}", read),
        Route("/chats/{chat_id}/skills/{ref}/edit", edit),
    ]


async def edit_page(
    services: UiServices,
    request: Request,
    chat: Chat,
    skill: Skill,
    typed: str | None = None,
    error: HarnessError | None = None,
) -> Response:
    """The form with a skill's text, or with what was typed and why it was refused.

    Raises what reading the skill raises where nothing was typed.
    """
    shelf = services.chats.skills.shelf(chat.identity)
    text, fault = await shelf.read(skill)
    if text is None and typed is None:
        raise HarnessError(
            fault, hint="It cannot be edited here; mend it on disk.", code="skill_refused"
        )
    now = text.source if text is not None else ""
    page = {
        "typed": now if typed is None else typed,
        # With the text as it is now, so that saving once more is to replace what was just shown.
        "seen": text.sha256 if text is not None else "",
        "now": now if error is not None and error.code == "skill_changed" else "",
        "error": error,
    }
    status = status_of(error) if error is not None else 200
    return _page(services, request, "skill_edit", chat, skill, page, status)


def skill_address(chat: Chat, skill: Skill, path: str = SKILL_FILE) -> str:
    """The page of a skill, or of a file of it."""
    return f"/chats/{chat.id}/skills/{ref_of(skill)}/files/{quote(path)}"


async def _found(services: UiServices, request: Request) -> tuple[Chat, SkillShelf, Skill]:
    identity = services.identify(request)
    chat = services.chats.get(identity, request.path_params["chat_id"])
    shelf = await services.chats.skills.look(identity)
    return chat, shelf, shelf.find(request.path_params["ref"])


async def _shown(path: str, content: bytes) -> ShownFile:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return ShownFile(path, len(content))
    return await _shown_text(path, text)


async def _shown_text(path: str, text: str) -> ShownFile:
    size = len(text.encode(errors="replace"))
    if path.lower().endswith(".md") and len(text) <= MARKDOWN_CHARS:
        # In a thread: a long one takes a while.
        html = with_files(await asyncio.to_thread(render, text), "")
        return ShownFile(path, size, html=Markup(html))  # noqa: S704 (sanitised)
    more = max(0, len(text) - SHOWN_CHARS)
    return ShownFile(path, size, text=Markup(plain_code(text[:SHOWN_CHARS])), more=more)  # noqa: S704 (escaped)


def _page(
    services: UiServices,
    request: Request,
    template: str,
    chat: Chat,
    skill: Skill,
    page: dict[str, Any],
    status: int = 200,
) -> Response:
    html = services.templates.get_template(f"pages/{template}.html").render(
        theme=theme_of(request),
        title=skill.name,
        chat={"id": chat.id, "title": chat.title},
        skill=skill,
        base=f"/chats/{chat.id}/skills/{ref_of(skill)}",
        **page,
    )
    return HTMLResponse(html.encode(errors="replace"), status)
