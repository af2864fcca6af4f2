"""The zip of a chat's files, or of the whole chat: its record and all versions besides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext, suppress
from functools import partial

from starlette.responses import Response, StreamingResponse

from web.chats.chat import Chat
from web.chats.files.file_names import title_name
from web.chats.snapshots.recording import recorded_runs
from web.chats.snapshots.unpacking import SNAPSHOT
from web.harness.builtin.chat_files import ChatFiles, OpenFile
from web.harness.builtin.paths import RESERVED_FOLDER
from web.harness.builtin.record import RECORD_NAMES, write_record
from web.harness.values.errors import HarnessError, NotFound
from web.ui.files.file_bytes import disposition
from web.ui.files.zips import ZipEntry, zipped
from web.ui.services import UiServices


async def chat_zip(services: UiServices, chat: Chat, *, whole: bool, head: bool) -> Response:
    """All files; of the `whole` chat its record, written just now, and all kept versions too.

    Unpacked it is the chat's folder as it was. Raises NotFound where there is nothing at all.
    """
    files = services.files(chat)
    entries = [
        ZipEntry(info.path, partial(files.file_now, info.path)) for info in await files.list()
    ]
    if whole:
        await write_record(files, chat.title, await recorded_runs(chat, services.events))
        # First, so that the page knows by the beginning of the zip what it is.
        entries = [*await _snapshot(services, chat), *entries]
        entries += [
            ZipEntry(f"{RESERVED_FOLDER}/record/{name}", partial(files.record_now, name))
            for name in RECORD_NAMES
        ]
    elif not entries:
        raise NotFound("This chat has no files.", hint="There is nothing to download yet.")
    content = zipped(entries) if not whole else _with_versions(files, entries)
    name = f"{title_name(chat.title)} ({'chat' if whole else 'files'}).zip"
    headers = {
        "content-disposition": disposition(name),
        "cache-control": "private, no-store",
    }
    if head:
        return Response(headers=headers, media_type="application/zip")
    return StreamingResponse(content, headers=headers, media_type="application/zip")


class _Bytes(OpenFile):
    """Data in memory, as a file."""

    def __init__(self, data: bytes, changed_at: float) -> None:
        super().__init__(-1, len(data), changed_at, "", "application/json")
        self._data = data

    def read_now(self, start: int, size: int) -> bytes:
        return self._data[start : start + size]


async def _snapshot(services: UiServices, chat: Chat) -> list[ZipEntry]:
    """What makes a chat of the zip again; nothing while an answer is written."""
    try:
        data = await services.snapshots.save(chat)
    except HarnessError:
        return []
    return [ZipEntry(SNAPSHOT, lambda: nullcontext(_Bytes(data, chat.record.order)))]


async def _with_versions(files: ChatFiles, entries: list[ZipEntry]) -> AsyncIterator[bytes]:
    """The zip with the list of versions as it is at this moment, and the content of each."""
    async with AsyncExitStack() as stack:
        versions: list[ZipEntry] = []
        with suppress(NotFound):
            log, digests = await stack.enter_async_context(files.open_log())
            versions = [
                ZipEntry(f"{RESERVED_FOLDER}/versions.jsonl", lambda: nullcontext(log)),
                *(
                    ZipEntry(f"{RESERVED_FOLDER}/objects/{each}", partial(files.content_now, each))
                    for each in digests
                ),
            ]
        async for piece in zipped([*entries, *versions]):
            yield piece
