"""The forms of resources and templates: read, attached, watched, searched. All but the search call
a server, so they need the page's token."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.actions.file_actions import take_off
from web.chats.chat import Chat
from web.chats.servers.readings import words_of
from web.harness.values.errors import HarnessError
from web.harness.values.events import ResultPart
from web.ui.form_data import Fields
from web.ui.markdown import render, with_files
from web.ui.pages.forms import by_script, of_a_chat, stay, told
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

MARKDOWN = ("text/markdown", "text/x-markdown")
MARKDOWN_CHARS = 50_000
"""Of a text that is shown as markdown; a longer one is shown as it is written."""


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part of what was read; `html` is there where it is markdown."""

    part: ResultPart
    html: Markup | None = None


def resource_form_routes(services: UiServices) -> list[Route]:
    forms = _ResourceForms(services)
    return [
        Route("/chats/{chat_id}/servers/{key}/resources", forms.search, methods=["GET"]),
        *(
            Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
            for path, handler in (
                ("servers/{key}/resources", forms.listed),
                ("servers/{key}/templates", forms.of_template),
                ("attachments/{attachment_id}/remove", forms.remove),
            )
        ),
    ]


class _ResourceForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats

    async def search(self, request: Request) -> Response:
        """The resources in which some words stand."""
        chat = self._chats.get(self._services.identify(request), request.path_params["chat_id"])
        words = request.query_params.get("q", "").strip()
        found = self._chats.servers.of(chat).offers.search(request.path_params["key"], words)
        context = {"channel": chat.id, "found": found, "words": words}
        return answer_part(self._services, request, "found", "Resources", context)

    async def listed(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        offers = self._chats.servers.of(chat).offers
        uri, name = offers.listed(request.path_params["key"], fields.get("ref", ""))
        return await self._do(chat, fields, request, uri, name)

    async def of_template(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        offers = self._chats.servers.of(chat).offers
        key, ref = request.path_params["key"], fields.get("ref", "")
        uri = offers.expanded(key, ref, typed_fields(offers.fields(key, "template", ref), fields))
        return await self._do(chat, fields, request, uri, "")

    async def remove(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await take_off(self._chats, chat, request.path_params["attachment_id"])
        return stay(request, chat)

    async def _do(
        self, chat: Chat, fields: Fields, request: Request, uri: str, name: str
    ) -> Response:
        """What the button says that was pressed."""
        offers, key = self._chats.servers.of(chat).offers, request.path_params["key"]
        match fields.get("do"):
            case "read":
                parts = await read_parts(await offers.read(key, uri))
                context = {"channel": chat.id, "name": name or uri, "parts": parts}
                return answer_part(
                    self._services, request, "reading", name or uri, {**context, "at": time.time()}
                )
            case "attach":
                material = await offers.material(key, uri, name)
                await self._chats.attach(chat, material.blocks)
                return told(stay(request, chat), f"Attached. {words_of(material.left_out)}")
            case "watch" | "unwatch" as do:
                self._services.chats.servers.of(chat).changeable(key)
                await offers.watch(key, uri, on=do == "watch")
                return stay(request, chat)
            case _:
                raise HarnessError("There is no such button.", code="invalid_arguments")


def typed_fields(names: tuple[str, ...], fields: Fields) -> dict[str, str]:
    """What was typed, by the names of the fields: those are a stranger's, a page sends numbers."""
    return {name: fields.get(f"a{number}", "") for number, name in enumerate(names)}


async def read_parts(parts: tuple[ResultPart, ...]) -> list[ReadPart]:
    """The parts with their markdown rendered, in a thread: a long one takes a while."""
    shown = []
    for part in parts:
        html = None
        is_markdown = part.media_type.partition(";")[0].strip().lower() in MARKDOWN
        if part.kind == "text" and is_markdown and len(part.text) <= MARKDOWN_CHARS:
            text = await asyncio.to_thread(render, part.text)
            html = Markup(with_files(text, ""))  # noqa: S704 (sanitised)
        shown.append(ReadPart(part, html))
    return shown


def answer_part(
    services: UiServices, request: Request, part: str, name: str, context: dict[str, Any]
) -> Response:
    """A template of parts/ as the answer to a form; without script it is a page of its own."""
    template = f"parts/{part}.html"
    if by_script(request):
        html = services.templates.get_template(template).render(context)
        target = {"HX-Trigger": "changed", "HX-Retarget": "find [data-answer]"}
        headers = target if request.method == "POST" else {}
        return HTMLResponse(html.encode(errors="replace"), headers=headers)
    html = services.templates.get_template("pages/resource.html").render(
        theme=theme_of(request),
        title=name,
        part=template,
        back=f"/chats/{request.path_params['chat_id']}",
        **{**context, "name": name},
    )
    return HTMLResponse(html.encode(errors="replace"))
