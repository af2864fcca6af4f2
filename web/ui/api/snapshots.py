"""The part of the JSON API that saves chats as snapshots, and makes chats of them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from web.harness.values.errors import HarnessError
from web.ui.api.operations import Call, Operation
from web.ui.api.shapes import ChatMade, Nothing
from web.ui.snapshot_forms import loaded, snapshot_file


async def save_snapshot(call: Call[Nothing]) -> Response:
    chat = call.services.chats.get(call.identity, call.path["chat_id"])
    return snapshot_file(chat.id, await call.services.snapshots.save(chat))


async def load_snapshot(call: Call[Nothing]) -> ChatMade:
    if not call.request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HarnessError(
            "The content has to be a form with a file.",
            hint="Send multipart/form-data with a part `file`.",
            code="unsupported_media_type",
        )
    chat = await loaded(call.services, call.request, call.identity)
    return ChatMade(id=chat.id, title=chat.title, model=chat.record.model)


_FORM = {
    "file": {
        "type": "string",
        "format": "binary",
        "description": "One snapshot, or the zip of a whole chat.",
    },
    "request_id": {"type": "string", "description": "The same id again: the same chat."},
}

SNAPSHOT_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/api/chats/{chat_id}/snapshot",
        "A chat as a snapshot: its conversation, settings, usage and cost",
        save_snapshot,
        Nothing,
        refusals=("not_found", "session_conflict", "limit_exceeded", "snapshot_too_large"),
    ),
    Operation(
        "POST",
        "/api/chats/from-snapshot",
        "A new chat that goes on where a snapshot ends",
        load_snapshot,
        Nothing,
        ChatMade,
        201,
        (
            "bad_request",
            "invalid_arguments",
            "unsupported_media_type",
            "snapshot_refused",
            "from_the_future",
            "session_id_refused",
            "snapshot_too_large",
            "too_large",
            "too_long",
            "limit_exceeded",
        ),
        form=_FORM,
    ),
)
