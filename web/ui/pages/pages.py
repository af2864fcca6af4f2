"""The pages: a new chat, a chat, the question before a deletion, an error."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.parts.channel import Channel
from web.harness.values.errors import HarnessError
from web.ui.access.identity import TokenIdentity
from web.ui.pages.typed_text import Typed
from web.ui.services import UiServices

SUGGESTIONS = (
    ("See what it can do", "What can you do?"),
    ("Run two tools", "Calculate 48 * 12, then tell me the time."),
    ("Approve a file", "Write a file note.txt saying Hello from the chat."),
    ("Watch a long answer", "Write 600 words with a table, code and math."),
    (
        "Follow a plan",
        "Make a plan: calculate 48 * 12; have a sub-agent tell the time in Tokyo; "
        "say that it is done.",
    ),
)
"""Label and message: plain words, which any model understands, the demo model too."""

DEMO_SERVER_SUGGESTIONS = (
    ("Say hello", "/{}__greet name=Ada"),
    ("Draw a picture", "/{}__draw_bar_chart numbers=[5,8,3]"),
    ("Look something up", "/{}__show_planet name=Saturn"),
    ("See an error", "/{}__divide number=1 by=0"),
)
"""Label and message for a chat with the demo server of this name."""


def page_routes(services: UiServices) -> list[Route]:
    async def new(request: Request) -> Response:
        identity = services.identify(request)
        side_bar = services.chats.side_bar(identity)
        page = await _shell(services, request, side_bar, None)
        page["suggestions"] = [{"label": label, "text": text} for label, text in SUGGESTIONS]
        return _html(services, "new", page)

    async def chat(request: Request) -> Response:
        identity = services.identify(request)
        found = services.chats.get(identity, request.path_params["chat_id"])
        side_bar = services.chats.side_bar(identity)
        return _html(services, "chat", await _shell(services, request, side_bar, found))

    async def delete(request: Request) -> Response:
        identity = services.identify(request)
        found = services.chats.get(identity, request.path_params["chat_id"])
        files = await services.chats.files.counted(found)
        page = {
            "theme": theme_of(request),
            "title": "Delete",
            "chat": _named(found),
            "files": {"count": files.count, "bytes": files.bytes, "fault": files.fault},
        }
        return _html(services, "delete", page)

    async def chats(request: Request) -> Response:
        return RedirectResponse("/", 303)

    return [
        Route("/", new),
        Route("/chats", chats),
        Route("/chats/{chat_id}", chat),
        Route("/chats/{chat_id}/delete", delete),
    ]


def error_page(
    services: UiServices, request: Request, status: int, error: HarnessError, typed: Typed
) -> Response:
    """The page of an error, with what was typed and where it can be sent once more."""
    chat_id = request.path_params.get("chat_id")
    lost, path = status == 404, request.url.path
    if path in ("/chats", "/chats/with-files") or path.endswith(("/messages", "/uploads")):
        again = "/chats" if lost or not chat_id else f"/chats/{chat_id}/messages"
    else:
        # Another form can be put right, but not where what it was about is gone or decided.
        again = path if status == 422 else ""
    page = {
        "theme": theme_of(request),
        "title": error.message,
        "status": status,
        "error": error,
        "back": f"/chats/{chat_id}" if chat_id and _is_there(services, request) else "/",
        "typed": typed,
        "action": again if typed.text else "",
        "request_id": services.new_id(),
    }
    return _html(services, "error", page, status)


def error_line(services: UiServices, status: int, error: HarnessError) -> Response:
    """The error as the line that a form shows."""
    html = Markup('<p class="error" role="alert">{} <small>{}</small></p>')
    return HTMLResponse(html.format(error.message, error.hint), status)


def _is_there(services: UiServices, request: Request) -> bool:
    """Whether the chat in the address is there, for whoever asks."""
    with suppress(HarnessError):
        services.chats.get(services.identify(request), request.path_params["chat_id"])
        return True
    return False


async def _shell(
    services: UiServices, request: Request, side_bar: Channel, chat: Chat | None
) -> dict[str, Any]:
    """What pages/shell.html needs. The version is read first, then every part is rendered: what
    changes meanwhile has a higher version on its element, and comes once more by the stream."""
    if chat is not None:
        await services.chats.files.show(chat)
        await services.chats.memories.show(chat)
    channels = [side_bar] if chat is None else [side_bar, chat.channel]
    shelf = await services.chats.skills.look(services.identify(request))
    for channel in channels:
        await _settle(channel)
    version = services.chats.clock.version
    for channel in channels:
        await services.fragments.warm(channel.name, channel.parts())
    log = await services.fragments.gathered(chat.channel, "log") if chat is not None else None
    return {
        "theme": theme_of(request),
        "title": chat.title if chat else "",
        "chat": _named(chat) if chat else None,
        "models": services.chats.models,
        "model": chat.record.model if chat else services.chats.models[0],
        "tools": services.tools(chat),
        "servers": _servers(services, chat),
        "skills": [skill.name for skill in shelf.usable(())],
        "remembers": services.chats.memories.are_there,
        "begun": chat is not None and chat.channel.slot("log") != [],
        "version": version,
        "epoch": services.chats.clock.epoch,
        "region": services.fragments.regions(
            side_bar,
            chat.channel if chat else None,
            current=chat.id if chat else "",
            log=log,
        ),
        "who": _who(services, request),
        "draft": chat.record.draft if chat else "",
        "request_id": services.new_id(),
        "working": chat is not None and chat.state == "working",
        "memory": services.memory,
        "demo": services.demo,
        "most": {
            "chars": services.chats.max_message_chars,
            "draft": services.chats.limits.max_draft_chars,
            "files": services.chats.limits.attachments.max_count,
            "bytes": services.max_file_bytes,
        },
    }


def _servers(services: UiServices, chat: Chat | None) -> dict[str, Any]:
    servers = services.chats.servers
    demo = servers.demo_name
    return {
        "names": servers.names,
        "demo": demo,
        "has_demo": chat is not None and servers.of(chat).has(demo),
        "suggestions": [
            {"label": label, "text": text.format(demo)} for label, text in DEMO_SERVER_SUGGESTIONS
        ],
    }


async def _settle(channel: Channel) -> None:
    """Splits all that has streamed in, for a reader who may have no script to fetch the rest."""
    channel.settled()
    while channel.left:
        await asyncio.sleep(0)
        channel.settled()


def _who(services: UiServices, request: Request) -> dict[str, Any]:
    identity = services.identity
    return {
        "key": services.person(request),
        "name": "" if identity.is_local else services.identify(request).user_id,
        "signs_out": isinstance(identity, TokenIdentity),
    }


def _named(chat: Chat) -> dict[str, str]:
    return {"id": chat.id, "title": chat.title, "model": chat.record.model}


def theme_of(request: Request) -> str:
    """The theme that the person chose, "auto" where none."""
    theme = request.cookies.get("theme", "auto")
    return theme if theme in ("light", "dark") else "auto"


def _html(services: UiServices, name: str, page: dict[str, Any], status: int = 200) -> HTMLResponse:
    html = services.templates.get_template(f"pages/{name}.html").render(page)
    return HTMLResponse(html.encode(errors="replace"), status)
