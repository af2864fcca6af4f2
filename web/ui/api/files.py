"""The JSON API of a chat's files: what there is, and the bytes of each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from web.chats.actions.file_actions import delete_file, purge_file
from web.chats.chat import Chat
from web.chats.registry.chats import Chats
from web.harness.builtin.versions import FileInfo
from web.harness.values.errors import HarnessError
from web.ui.api.operations import Call, Operation, Query
from web.ui.api.shapes import Nothing
from web.ui.files.file_bytes import file_response

FATE = Query("files", "`delete`: its files go with it. `keep`, the default: they stay.", "^[a-z]+$")


class FileOrigin(BaseModel):
    """Who made the version that a file is in. `decision` is how a person let the call run."""

    model_config = ConfigDict(from_attributes=True)

    kind: Literal["call", "person", "restore", "outside"]
    run_id: str
    call_id: str
    approval: str
    decision: str


class FileSummary(BaseModel):
    """A file of a chat. `size` is in bytes, `changed_at` in seconds since the epoch.

    `version` is the number of the version that it is in, null where it was changed by hand since;
    `versions` counts those kept.
    """

    path: str
    size: int
    changed_at: float
    sha256: str
    media_type: str
    version: int | None
    versions: int
    made_by: FileOrigin | None


async def list_files(call: Call[Nothing]) -> list[FileSummary]:
    return [_summary(info) for info in await call.services.files(_chat(call)).list()]


async def get_file(call: Call[Nothing]) -> Response:
    """The bytes, or the range of them that is asked for."""
    path, files = call.path["path"], call.services.files(_chat(call))
    number = call.request.query_params.get("version", "")
    if number and (not number.isdecimal() or len(number) > 9):
        raise HarnessError("`version` has to be a number.", code="invalid_request")
    opened = files.open_version(path, int(number)) if number else files.open(path)
    return await file_response(call.request, opened, path.rpartition("/")[2])


async def remove_file(call: Call[Nothing]) -> None:
    """Deletes a file; with `versions=all` nothing brings it back."""
    chats, path = call.services.chats, call.path["path"]
    match call.request.query_params.get("versions", "keep"):
        case "keep":
            await delete_file(chats, _chat(call), path)
        case "all":
            await purge_file(chats, _chat(call), path)
        case _:
            raise HarnessError(
                "`versions` has to be keep or all.",
                hint="Nothing was deleted.",
                code="invalid_request",
            )


async def delete_with(chats: Chats, chat: Chat, files: str | None) -> None:
    """Deletes a chat; `files` says what becomes of what it made."""
    if files not in (None, "keep", "delete"):
        raise HarnessError(
            "`files` has to be keep or delete.", hint="Nothing was deleted.", code="invalid_request"
        )
    await chats.delete(chat, with_files=files == "delete")


FILE_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/api/chats/{chat_id}/files",
        "The files of a chat",
        list_files,
        Nothing,
        list[FileSummary],
        refusals=("not_found", "tool_error"),
    ),
    Operation(
        "GET",
        "/api/chats/{chat_id}/files/{path:path}",
        "The bytes of a file",
        get_file,
        Nothing,
        bytes,
        refusals=("not_found", "tool_error", "invalid_request"),
        query=(Query("version", "Number of an older version.", "^[0-9]{1,9}$"),),
        media_type="application/octet-stream",
    ),
    Operation(
        "DELETE",
        "/api/chats/{chat_id}/files/{path:path}",
        "Delete a file",
        remove_file,
        Nothing,
        status=204,
        refusals=("not_found", "tool_error", "limit_exceeded", "invalid_request"),
        query=(
            Query(
                "versions",
                "`all`: its versions go too, for good. `keep`, the default: they bring it back.",
                "^(keep|all)$",
            ),
        ),
    ),
)


def _chat(call: Call[Nothing]) -> Chat:
    return call.services.chats.get(call.identity, call.path["chat_id"])


def _summary(info: FileInfo) -> FileSummary:
    last = info.last
    return FileSummary(
        path=info.path,
        size=info.size,
        changed_at=info.changed_at,
        sha256=info.sha256,
        media_type=info.media_type,
        version=last.number if last else None,
        versions=info.versions,
        made_by=FileOrigin.model_validate(last.origin) if last else None,
    )
