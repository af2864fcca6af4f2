"""What the page's forms do. Each works without script too: then the answer leads back to the page.

With htmx the answer is empty, says by `HX-Trigger` that something changed, and the page fetches it.
An error is raised; how it is shown is decided in one place for all routes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat, attachment_part
from web.chats.registry.composing import before_draft
from web.chats.setup import typed_setup
from web.chats.transcript.inputs import find_input
from web.harness.tools.forms import read_typed
from web.harness.values.errors import HarnessError
from web.harness.values.events import Decision, InputAction
from web.harness.values.messages import JsonObject
from web.harness.values.model import parse_arguments
from web.ui.form_data import Fields, fields_of, read_form
from web.ui.pages.refused_inputs import field_names, refused_input
from web.ui.services import UiServices

MESSAGES = re.compile(r"/chats(?:/[^/]+/(?:messages|draft))?")
"""The addresses that take what is typed into the message box."""

Handler = Callable[[Chat, Fields, Request], Awaitable[Response]]


def form_routes(services: UiServices) -> list[Route]:
    forms = _Forms(services)
    return [
        Route("/chats", forms.create, methods=["POST"]),
        Route("/chats/{chat_id}/restore", forms.restore, methods=["POST"]),
        Route("/more-chats", forms.show_more, methods=["POST"]),
        *(
            Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
            for path, handler in (
                ("messages", forms.send),
                ("stop", forms.stop),
                ("approvals/{key}", forms.decide),
                ("inputs/{key}", forms.answer_input),
                ("grants/{tool}/revoke", forms.revoke),
                ("queue/{run_id}/take-back", forms.take_back),
                ("retry", forms.retry),
                ("delete", forms.delete),
                ("settings", forms.change),
                ("draft", forms.keep_draft),
            )
        ),
    ]


class _Forms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats

    async def create(self, request: Request) -> Response:
        """A new chat and its first message."""
        identity = self._services.identify(request)
        fields = await read_fields(request)
        self._chats.check(fields.get("text", ""))
        _refuse_files(fields)
        await self._chats.skills.check_called(identity, fields.get("text", ""))
        request_id = fields.get("request_id", "")
        chat = await self._chats.create(
            identity, model=fields.get("model", ""), request_id=request_id
        )
        await self._chats.send(chat, fields.get("text", ""), request_id=request_id, queue=True)
        return leave(request, f"/chats/{chat.id}")

    async def restore(self, request: Request) -> Response:
        identity = self._services.identify(request)
        chat = await self._chats.restore(identity, request.path_params["chat_id"])
        return leave(request, f"/chats/{chat.id}")

    async def show_more(self, request: Request) -> Response:
        """Older chats in the side bar."""
        await self._chats.show_more(self._services.identify(request))
        return Response(status_code=204) if by_script(request) else leave(request, "/")

    async def send(self, chat: Chat, fields: Fields, request: Request) -> Response:
        _refuse_files(fields)
        off = chat.record.skills_off
        await self._chats.skills.check_called(chat.identity, fields.get("text", ""), off)
        before = {each.id for each in chat.record.attachments}
        await self._chats.send(
            chat,
            fields.get("text", ""),
            request_id=fields.get("request_id", ""),
            queue=True,
            model=fields.get("model", ""),
            attached=True,
            # Without script a draft is kept by forms of this page alone.
            draft=fields.get("draft", "") if by_script(request) else chat.record.draft,
        )
        went = before - {each.id for each in chat.record.attachments}
        # Their chips may be on the page for a while yet: it has to know that nothing waits there.
        ids = sorted(attachment_part(each) for each in went)
        return stay(request, chat, {"attachments-sent": {"ids": ids}} if ids else None)

    async def stop(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._chats.stop(chat, fields.get("run_id", ""))
        return stay(request, chat)

    async def decide(self, chat: Chat, fields: Fields, request: Request) -> Response:
        given = fields.get("decision", "")
        decision = next((each for each in get_args(Decision) if each == given), None)
        if decision is None:
            raise HarnessError("There is no such answer.", code="invalid_arguments")
        await self._chats.decide(
            chat,
            request.path_params["key"],
            decision,
            arguments=_edited(fields.get("arguments", "")),
            reason=fields.get("reason", "").strip(),
        )
        return stay(request, chat)

    async def answer_input(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """What a running tool asks for; a form that is not right comes back as it was typed."""
        given, key = fields.get("action", ""), request.path_params["key"]
        action = next((each for each in get_args(InputAction) if each == given), None)
        if action is None:
            raise HarnessError("There is no such answer.", code="invalid_arguments")
        asked, content = find_input(chat.channel, key), None
        if asked is not None and asked.address is None and action == "accept":
            every: dict[str, list[str]] = request.state.every
            typed = {name: every.get(sent, []) for name, sent in field_names(asked).items()}
            content, faults = read_typed(asked.fields, typed)
            if faults:
                return refused_input(self._services, request, asked, typed, faults)
        await self._chats.answer_input(chat, key, action, content)
        return stay(request, chat)

    async def revoke(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._chats.revoke(chat, request.path_params["tool"])
        return stay(request, chat)

    async def take_back(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A message that waits, for the box again: the page's script takes it from the answer. A
        header may not be so long."""
        run_id = request.path_params["run_id"]
        if by_script(request):
            text = await self._chats.take_back(chat, run_id)
            template = self._services.templates.get_template("parts/used.html")
            html = template.render(text=text, words="").encode(errors="replace")
            changed = stay(request, chat).headers["HX-Trigger"]
            return HTMLResponse(html, headers={"HX-Trigger": changed, "HX-Reswap": "none"})
        waits = next((each.text for each in chat.queue if each.run_id == run_id), "")
        self._chats.check_draft(before_draft(chat.record.draft, waits))
        await self._chats.take_back(chat, run_id)
        return stay(request, chat)

    async def retry(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.retry(chat, fields.get("run_id", ""))
        return stay(request, chat)

    async def delete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.delete(chat, with_files=fields.get("files") == "delete")
        # With script a page that shows another chat stays; the deleted one's leaves by itself.
        return stay(request, chat) if by_script(request) else leave(request, "/")

    async def change(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.change(
            chat,
            title=fields.get("title"),
            model=fields.get("model"),
            system_prompt=fields.get("system_prompt"),
            setup=typed_setup(fields, chat.record.setup),
        )
        answer = stay(request, chat)
        return told(answer, "Saved.") if "system_prompt" in fields else answer

    async def keep_draft(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.store_draft(chat, fields.get("text", ""))
        return Response(status_code=204)


def of_a_chat(services: UiServices, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a form that belongs to a chat, whose id is in the address."""

    async def handle(request: Request) -> Response:
        identity = services.identify(request)
        fields = await read_fields(request)
        chat = services.chats.get(identity, request.path_params["chat_id"])
        return await handler(chat, fields, request)

    return handle


async def read_fields(request: Request) -> Fields:
    """The text fields of a form; files are not taken here."""
    async with read_form(request, max_files=0) as form:
        return fields_of(request, form)


def _refuse_files(fields: Fields) -> None:
    """Without script, files that were chosen and not attached come by their names alone."""
    if fields.get("files"):
        raise HarnessError(
            "The files that you chose are not attached yet, so nothing was sent.",
            hint="Go back and press Attach first, or send the message without them.",
            code="invalid_arguments",
        )


def _edited(text: str) -> JsonObject | None:
    """Arguments that the person changed, as a JSON object; None where they were left alone."""
    if not text.strip():
        return None
    arguments, malformed = parse_arguments(text)
    if malformed is not None:
        raise HarnessError(
            "The arguments are not JSON, or are not one JSON object.",
            hint="The question is still open.",
            code="invalid_arguments",
        )
    return arguments


def by_script(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def stay(request: Request, chat: Chat, events: dict[str, Any] | None = None) -> Response:
    """The page stays and fetches what changed."""
    if not by_script(request):
        return RedirectResponse(f"/chats/{chat.id}", 303)
    # Header values are latin-1: json.dumps escapes whatever is beyond ASCII.
    return Response("", headers={"HX-Trigger": json.dumps({**(events or {}), "changed": None})})


def told(response: Response, words: str) -> Response:
    """The answer `stay` with a line for the place of the button; without script there is none."""
    if response.status_code != 200:
        return response
    html = Markup('<p class="soft" role="status">{}</p>').format(words)
    return HTMLResponse(html, headers={"HX-Trigger": response.headers["HX-Trigger"]})


def leave(request: Request, address: str) -> Response:
    """The browser goes to another page."""
    if not by_script(request):
        return RedirectResponse(address, 303)
    return Response("", headers={"HX-Redirect": address})
