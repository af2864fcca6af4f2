"""A chat saved as a snapshot to download, and a snapshot that was dropped in, made a chat."""

from __future__ import annotations

import re

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.records.chat_limits import check_request_id
from web.chats.steps.run_files import is_run_file
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import HarnessError, LimitExceeded
from web.harness.values.text import amount
from web.ui.form_data import fields_of, read_form
from web.ui.pages.forms import leave
from web.ui.services import UiServices

SNAPSHOTS = re.compile(r"(?:/api)?/chats/from-snapshot|/api/opened-runs")
"""The addresses that take snapshots, and runs that were exported."""

FORM_BYTES = 8 * 1024
"""Of a request with a snapshot, what a form puts around it."""

_KEPT = "Choose one snapshot. No chat was made."


def snapshot_form_routes(services: UiServices) -> list[Route]:
    async def save(request: Request) -> Response:
        identity = services.identify(request)
        chat = services.chats.get(identity, request.path_params["chat_id"])
        return snapshot_file(chat.id, await services.snapshots.save(chat))

    async def load(request: Request) -> Response:
        """A snapshot becomes a chat; a run that was exported is opened to be looked at."""
        identity = services.identify(request)
        with services.snapshots.place():
            data, request_id = await _given(services, request)
            if is_run_file(data):
                opened_id = await services.opened_runs.open(identity, data)
                return leave(request, f"/opened-runs/{opened_id}")
            chat = await services.snapshots.load(identity, data, request_id=request_id)
        return leave(request, f"/chats/{chat.id}")

    return [
        Route("/chats/from-snapshot", load, methods=["POST"]),
        Route("/chats/{chat_id}/snapshot", save),
    ]


def snapshot_file(chat_id: str, data: bytes) -> Response:
    """A snapshot to download, under the name by which `Agent.load_session` finds it."""
    headers = {
        "content-disposition": f'attachment; filename="{chat_id}.json"',
        "cache-control": "private, no-store",
    }
    return Response(data, headers=headers, media_type="application/json")


async def loaded(services: UiServices, request: Request, identity: HarnessIdentity) -> Chat:
    """The chat that is made of the part `file` of a form."""
    with services.snapshots.place():
        data, request_id = await _given(services, request)
        return await services.snapshots.load(identity, data, request_id=request_id)


async def opened_run(services: UiServices, request: Request, identity: HarnessIdentity) -> str:
    """The id under which a run is open that is the part `file` of a form."""
    with services.snapshots.place():
        data, _ = await _given(services, request)
        return await services.opened_runs.open(identity, data)


async def _given(services: UiServices, request: Request) -> tuple[bytes, str]:
    """The part `file` of a form, and the request id that came with it."""
    async with read_form(request, max_files=1, kept=_KEPT) as form:
        request_id = fields_of(request, form).get("request_id", "")
        check_request_id(request_id)
        return await _bytes(form, services.snapshots.max_bytes), request_id


async def _bytes(form: FormData, most: int) -> bytes:
    files = [each for each in form.getlist("file") if isinstance(each, UploadFile)]
    # A field in which nothing was chosen comes as a file without a name.
    given = next((each for each in files if each.filename), None)
    if given is None:
        raise HarnessError("No file was chosen.", hint=_KEPT, code="invalid_arguments")
    if (given.size or 0) > most:
        raise LimitExceeded(
            f"This file has {amount(given.size or 0)}; a snapshot may have {amount(most)}.",
            hint=_KEPT,
            code="too_large",
        )
    return await given.read(most + 1)
