"""Files from the page: chosen, dropped or pasted. By script they come one a request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.actions.uploads import GivenFile, Judged, judged, take_in
from web.chats.chat import Chat
from web.harness.values.errors import HarnessError, LimitExceeded
from web.ui.errors import status_of
from web.ui.form_data import Fields, fields_of, read_form
from web.ui.pages.forms import by_script, stay
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

UPLOADS = re.compile(r"/chats/(?:with-files|[^/]+/uploads)")
"""The addresses that take files."""

MAX_FILES = 20
"""Of one request; the first megabyte of each is in memory while it comes in."""

FORM_BYTES = 8 * 1024
"""Of a request with one file, what a form puts around it."""

MAX_AT_ONCE = 8
"""Requests with files, of everybody."""

_KEPT = "Nothing was attached. Go back: what you typed is still there."
_CHUNK_BYTES = 256 * 1024


def upload_form_routes(services: UiServices) -> list[Route]:
    forms = _UploadForms(services)
    return [
        Route("/chats/with-files", forms.create, methods=["POST"]),
        Route("/chats/{chat_id}/uploads", forms.add, methods=["POST"]),
    ]


@dataclass(slots=True)
class _Outcome:
    """What becomes of the files of one request; `judged` are those that can be taken in."""

    judged: list[Judged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: list[HarnessError] = field(default_factory=list)
    taken: int = 0

    @property
    def status(self) -> int:
        return status_of(self.refused[0]) if self.refused and not self.taken else 200


class _UploadForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats
        self._underway = 0

    async def create(self, request: Request) -> Response:
        """A new chat that the files are attached in; there is none where all are refused."""
        identity = self._services.identify(request)
        async with self._brought(request) as (fields, given):
            self._chats.check_draft(fields.get("text", ""))
            outcome = await self._judge(given, None)
            if not outcome.judged:
                raise outcome.refused[0]
            request_id = fields.get("request_id", "")
            chat = await self._chats.create(
                identity,
                model=fields.get("model", ""),
                # The page's id is that of its first message, which may be of another chat.
                request_id=f"{request_id}-files" if request_id else "",
            )
            await self._chats.keep_draft(chat, fields.get("text", ""))
            await self._take_in(chat, outcome)
        return self._told(request, chat, outcome, made=True)

    async def add(self, request: Request) -> Response:
        """Attaches files to the next message of a chat. What was typed beside them is kept."""
        identity = self._services.identify(request)
        chat = self._chats.get(identity, request.path_params["chat_id"])
        async with self._brought(request) as (fields, given):
            if "text" in fields:
                await self._chats.keep_draft(chat, fields["text"])
            outcome = await self._judge(given, chat)
            await self._take_in(chat, outcome)
        return self._told(request, chat, outcome)

    @asynccontextmanager
    async def _brought(self, request: Request) -> AsyncIterator[tuple[Fields, list[GivenFile]]]:
        """The fields and the files of a form. Raises LimitExceeded where too many come at once."""
        if self._underway >= MAX_AT_ONCE:
            raise LimitExceeded(
                f"{MAX_AT_ONCE} uploads are under way on this server, its limit.",
                hint="Try again in a moment. All else is kept.",
            )
        self._underway += 1
        try:
            async with read_form(request, max_files=MAX_FILES, kept=_KEPT) as form:
                files = [each for each in form.getlist("files") if isinstance(each, UploadFile)]
                # A field in which nothing was chosen comes as a file without a name.
                yield fields_of(request, form), [_given(each) for each in files if each.filename]
        finally:
            self._underway -= 1

    async def _judge(self, given: Sequence[GivenFile], chat: Chat | None) -> _Outcome:
        if not given:
            raise HarnessError(
                "No file was chosen.", hint="Choose one or more.", code="invalid_arguments"
            )
        outcome = _Outcome()
        for each in given:
            try:
                file = await judged(
                    each, self._chats.limits.attachments, self._services.max_file_bytes
                )
                together = [other.called(other.name) for other in (*outcome.judged, file)]
                self._chats.check_attachments(chat, together)
            except HarnessError as error:
                outcome.refused.append(error)
            else:
                outcome.judged.append(file)
        return outcome

    async def _take_in(self, chat: Chat, outcome: _Outcome) -> None:
        files = self._services.files(chat)
        for file in outcome.judged:
            try:
                note = await take_in(self._chats, chat, files, file)
            except HarnessError as error:
                outcome.refused.append(error)
            else:
                outcome.taken += 1
                outcome.notes += [note] if note else []

    def _told(
        self, request: Request, chat: Chat, outcome: _Outcome, *, made: bool = False
    ) -> Response:
        """Lines for the page's script, which goes to a chat that was made; or a page."""
        words = {"notes": outcome.notes, "refused": outcome.refused}
        environment = self._services.templates
        if by_script(request):
            html = environment.get_template("parts/uploaded.html").render(words)
            headers = {"HX-Redirect": f"/chats/{chat.id}"} if made else {"HX-Trigger": "changed"}
            return HTMLResponse(html.encode(errors="replace"), outcome.status, headers)
        if not outcome.notes and not outcome.refused:
            return stay(request, chat)
        html = environment.get_template("pages/uploads.html").render(
            theme=theme_of(request), title="Files", back=f"/chats/{chat.id}", **words
        )
        return HTMLResponse(html.encode(errors="replace"), outcome.status)


def _given(upload: UploadFile) -> GivenFile:
    async def chunks() -> AsyncIterator[bytes]:
        await upload.seek(0)
        while chunk := await upload.read(_CHUNK_BYTES):
            yield chunk

    return GivenFile(upload.filename or "", upload.size or 0, chunks)
