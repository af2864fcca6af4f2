"""What the page's forms do. Each works without script too: then the answer leads back to the page.

With htmx the answer is empty, says by `HX-Trigger` that something changed, and the page fetches it.
An error is raised; how it is shown is decided in one place for all routes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.harness.values.errors import HarnessError
from web.harness.values.events import Decision
from web.harness.values.messages import JsonObject
from web.harness.values.model import parse_arguments
from web.harness.values.text import sayable
from web.ui.services import UiServices

Fields = dict[str, str]
Handler = Callable[[Chat, Fields, Request], Awaitable[Response]]


def form_routes(services: UiServices) -> list[Route]:
    forms = _Forms(services)
    return [
        Route("/chats", forms.create, methods=["POST"]),
        Route("/chats/{chat_id}/restore", forms.restore, methods=["POST"]),
        *(
            Route(f"/chats/{{chat_id}}/{path}", forms.of_a_chat(handler), methods=["POST"])
            for path, handler in (
                ("messages", forms.send),
                ("stop", forms.stop),
                ("approvals/{key}", forms.decide),
                ("grants/{tool}/revoke", forms.revoke),
                ("queue/{run_id}/take-back", forms.take_back),
                ("retry", forms.retry),
                ("delete", forms.delete),
                ("settings", forms.change),
                ("draft", forms.keep_draft),
            )
        ),
    ]


@dataclass(frozen=True, slots=True)
class Typed:
    """What a person wrote into a form that was refused: the field, its text, the other fields."""

    name: str = ""
    text: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


def typed(request: Request) -> Typed:
    """What was typed into the form of this request, for an error page to keep."""
    fields: Fields = getattr(request.state, "fields", {})
    for name in ("text", "arguments", "reason", "title"):
        if fields.get(name):
            others = {key: value for key, value in fields.items() if key != name}
            return Typed(name, fields[name], others)
    return Typed()


class _Forms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats

    def of_a_chat(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            identity = self._services.identify(request)
            fields = await _fields(request)
            chat = self._chats.get(identity, request.path_params["chat_id"])
            return await handler(chat, fields, request)

        return handle

    async def create(self, request: Request) -> Response:
        """A new chat and its first message."""
        identity = self._services.identify(request)
        fields = await _fields(request)
        self._chats.check(fields.get("text", ""))
        request_id = fields.get("request_id", "")
        chat = await self._chats.create(
            identity, model=fields.get("model", ""), request_id=request_id
        )
        await self._chats.send(chat, fields.get("text", ""), request_id=request_id, queue=True)
        return _leave(request, f"/chats/{chat.id}")

    async def restore(self, request: Request) -> Response:
        identity = self._services.identify(request)
        chat = await self._chats.restore(identity, request.path_params["chat_id"])
        return _leave(request, f"/chats/{chat.id}")

    async def send(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.send(
            chat,
            fields.get("text", ""),
            request_id=fields.get("request_id", ""),
            queue=True,
            model=fields.get("model", ""),
        )
        return _stay(request, chat)

    async def stop(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._chats.stop(chat, fields.get("run_id", ""))
        return _stay(request, chat)

    async def decide(self, chat: Chat, fields: Fields, request: Request) -> Response:
        given = fields.get("decision", "")
        decision = next((each for each in get_args(Decision) if each == given), None)
        if decision is None:
            raise HarnessError("There is no such answer.", code="invalid_arguments")
        self._chats.decide(
            chat,
            request.path_params["key"],
            decision,
            arguments=_edited(fields.get("arguments", "")),
            reason=fields.get("reason", "").strip(),
        )
        return _stay(request, chat)

    async def revoke(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._chats.revoke(chat, request.path_params["tool"])
        return _stay(request, chat)

    async def take_back(self, chat: Chat, fields: Fields, request: Request) -> Response:
        run_id = request.path_params["run_id"]
        text = self._chats.take_back(chat, run_id)
        if not _by_script(request):
            await self._chats.keep_draft(chat, text)
        return _stay(request, chat, {"taken-back": {"text": text, "run_id": run_id}})

    async def retry(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.retry(chat, fields.get("run_id", ""))
        return _stay(request, chat)

    async def delete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.delete(chat)
        # With script a page that shows another chat stays; the deleted one's leaves by itself.
        return _stay(request, chat) if _by_script(request) else _leave(request, "/")

    async def change(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.change(chat, title=fields.get("title"), model=fields.get("model"))
        return _stay(request, chat)

    async def keep_draft(self, chat: Chat, fields: Fields, request: Request) -> Response:
        await self._chats.keep_draft(chat, fields.get("text", ""))
        return Response(status_code=204)


async def _fields(request: Request) -> Fields:
    """The text fields of a form; files are not taken here."""
    _, _, charset = request.headers.get("content-type", "").lower().partition("charset=")
    if charset and charset.strip(' "').partition(";")[0] not in ("utf-8", "utf8"):
        raise HarnessError("Only forms in UTF-8 are taken.", code="unsupported_media_type")
    async with request.form(max_files=0, max_fields=32, max_part_size=2**21) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    # Browsers send line ends as CR LF.
    fields = {name: sayable(value.replace("\r\n", "\n")) for name, value in fields.items()}
    request.state.fields = fields
    return fields


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


def _by_script(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def _stay(request: Request, chat: Chat, events: dict[str, Any] | None = None) -> Response:
    """The page stays and fetches what changed."""
    if not _by_script(request):
        return RedirectResponse(f"/chats/{chat.id}", 303)
    # Header values are latin-1: json.dumps escapes whatever is beyond ASCII.
    return Response("", headers={"HX-Trigger": json.dumps({**(events or {}), "changed": None})})


def _leave(request: Request, address: str) -> Response:
    """The browser goes to another page."""
    if not _by_script(request):
        return RedirectResponse(address, 303)
    return Response("", headers={"HX-Redirect": address})
