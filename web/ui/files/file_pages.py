"""The pages of a chat's files: a preview of each, and the list with a search.

Bytes come from `/chats/{id}/raw/{path}`, all of them from `/chats/{id}/files.zip`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.files.folders import SHOWN_LEFT_OUT
from web.chats.files.shown_files import made, shown_file, shown_versions
from web.harness.builtin.chat_files import ChatFiles, OpenFile
from web.harness.builtin.versions import Version
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound, ToolError
from web.ui.files.chat_zips import chat_zip
from web.ui.files.file_bytes import FRAMED, file_response
from web.ui.files.file_frames import frame_response
from web.ui.files.listeners import while_there
from web.ui.files.previews import Previews
from web.ui.layouts.places import Whose
from web.ui.layouts.workshop import Workshop
from web.ui.middleware.safeguards import CONTENT_SECURITY_POLICY
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

LISTED_FILES = 1_000

_POLICY = f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"
"""Of a page with a frame. What is in the frame may lead it nowhere else by this."""


def file_page_routes(services: UiServices) -> list[Route]:
    pages = _FilePages(services)
    return [
        Route("/chats/{chat_id}/files", pages.listed),
        Route("/chats/{chat_id}/files.zip", pages.zip),
        Route("/chats/{chat_id}/files/{path:path}", pages.shown),
        Route("/chats/{chat_id}/raw/{path:path}", pages.raw),
        Route("/chats/{chat_id}/framed/{path:path}", pages.framed),
    ]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for: a file as it is, or one of its versions (0 for none)."""

    chat: Chat
    files: ChatFiles
    path: str
    version: int

    def open(self) -> AbstractAsyncContextManager[OpenFile]:
        if self.version:
            return self.files.open_version(self.path, self.version)
        return self.files.open(self.path)

    @property
    def name(self) -> str:
        """What it is called when it is saved: an older version not as the file itself."""
        name = self.path.rpartition("/")[2]
        if not self.version:
            return name
        stem, dot, ending = name.rpartition(".")
        return f"{stem}.v{self.version}.{ending}" if dot and stem else f"{name}.v{self.version}"


class _FilePages:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._workshop = Workshop()
        self._previews = Previews(self._workshop)

    async def listed(self, request: Request) -> Response:
        """All files, or those in whose path some words stand."""
        chat = self._chat(request)
        words = request.query_params.get("q", "").strip()
        survey = await self._services.files(chat).survey()
        wanted = words.casefold().split()
        found = [
            shown_file(chat.channel, info, ())
            for info in survey.files
            if all(word in info.path.casefold() for word in wanted)
        ]
        return await self._html(
            request,
            "files",
            title="Files",
            chat=_named(chat),
            files=found[:LISTED_FILES],
            more=len(found) - LISTED_FILES,
            words=words,
            left_out=survey.left_out,
            named=survey.named[:SHOWN_LEFT_OUT],
        )

    async def shown(self, request: Request) -> Response:
        """The preview of a file, or of one of its versions; of a deleted one its versions."""
        asked = self._asked(request)
        versions = await asked.files.versions(asked.path)
        async with AsyncExitStack() as stack:
            try:
                file = await stack.enter_async_context(asked.open())
            except (NotFound, ToolError) as error:
                if asked.version or (not versions and isinstance(error, ToolError)):
                    raise
                if not versions:
                    return await self._missing(request, asked)
                return await self._page(request, asked, versions, None)
            page = request.query_params.get("page", "")
            source = request.query_params.get("as") == "source"
            making = self._previews.of(
                file,
                asked.path,
                source=source,
                page=int(page) if page.isdecimal() and len(page) < 10 else 1,
                files=_below(asked, "files"),
                pictures=_below(asked, "raw"),
                whose=self._whose(request, asked),
            )
            shown = await while_there(request, making)
            said = f"{_not_kept(asked, versions, file)} {shown.words}".strip()
            shown = replace(shown, words=said)
            return await self._page(request, asked, versions, file, preview=shown, source=source)

    async def raw(self, request: Request) -> Response:
        """The bytes, to be saved; with `show` for an image or a player of a page."""
        asked = self._asked(request)
        inline = request.query_params.get("show") == "1"
        try:
            return await file_response(request, asked.open(), asked.name, inline=inline)
        except NotFound:
            meant = await _meant(asked)
            if not meant:
                raise
            where = _below(asked, "raw", "") + quote(meant, safe="/")
            return RedirectResponse(f"{where}?{request.url.query}")

    async def framed(self, request: Request) -> Response:
        """What a page shows in a frame."""
        asked = self._asked(request)
        async with asked.open() as file:
            if file.media_type not in FRAMED:
                raise NotFound("This file is not shown in a frame.")
            framed = frame_response(file, self._workshop, self._whose(request, asked))
            return await while_there(request, framed)

    async def zip(self, request: Request) -> Response:
        """All files; with `record` the whole chat."""
        return await chat_zip(
            self._services,
            self._chat(request),
            whole=request.query_params.get("record") == "1",
            head=request.method == "HEAD",
        )

    async def _missing(self, request: Request, asked: _Asked) -> Response:
        """Words for a link that leads nowhere, or the file that it means."""
        meant = await _meant(asked)
        if meant:
            return RedirectResponse(address(asked.chat.id, meant))
        return await self._page(request, asked, (), None, status=404)

    async def _page(
        self,
        request: Request,
        asked: _Asked,
        versions: tuple[Version, ...],
        file: OpenFile | None,
        **shown: Any,
    ) -> Response:
        """The page of a file; `file` is None for one that was deleted."""
        chat = asked.chat
        version = next((each for each in versions if each.number == asked.version), None)
        last = versions[-1] if versions else None
        if file is not None and not _not_kept(asked, versions, file) and not asked.version:
            version = last
        query = f"?version={asked.version}" if asked.version else ""
        path = f"{quote(asked.path, safe='/')}{query}"
        raw = f"/chats/{chat.id}/raw/{path}"
        return await self._html(
            request,
            "file",
            title=asked.path,
            chat=_named(chat),
            path=asked.path,
            address=address(chat.id, asked.path),
            raw=raw,
            show=f"{raw}{'&' if query else '?'}show=1",
            query=query,
            number=asked.version,
            file=file,
            made=made(chat.channel, version) if version or not asked.version else None,
            versions=shown_versions(chat.channel, versions),
            framed=f"/chats/{chat.id}/framed/{path}",
            **{"preview": None, "source": False, **shown},
        )

    async def _html(
        self, request: Request, name: str, status: int = 200, **context: Any
    ) -> Response:
        template = self._services.templates.get_template(f"pages/{name}.html")

        def html() -> bytes:
            return template.render(theme=theme_of(request), **context).encode(errors="replace")

        # A page of a table may have some ten thousand cells.
        content = await run_in_thread(html)
        return HTMLResponse(content, status, {"content-security-policy": _POLICY})

    def _chat(self, request: Request) -> Chat:
        identity = self._services.identify(request)
        return self._services.chats.get(identity, request.path_params["chat_id"])

    def _whose(self, request: Request, asked: _Asked) -> Whose:
        identity = self._services.identify(request)
        return Whose(f"{identity.tenant_id}/{identity.user_id}", asked.chat.id)

    def _asked(self, request: Request) -> _Asked:
        chat = self._chat(request)
        number = request.query_params.get("version", "")
        if number and (not number.isdecimal() or len(number) > 9):
            raise NotFound("There is no such version.", hint="The file's page lists those kept.")
        path = request.path_params["path"]
        return _Asked(chat, self._services.files(chat), path, int(number or 0))


def _not_kept(asked: _Asked, versions: tuple[Version, ...], file: OpenFile) -> str:
    """Why a file as it is now is none of its versions; '' where it is one."""
    most = asked.files.limits.max_file_bytes
    if asked.version or (file.sha256 and versions and versions[-1].sha256 == file.sha256):
        return ""
    if file.size > most:
        return f"This file is too large to be kept as a version: up to {most:,} bytes can be."
    return "This file is being changed by another program, so this state of it is no version."


async def _meant(asked: _Asked) -> str:
    """The file that an address means which begins with the folder of all files, or of the chat, as
    models write who think of it from outside; '' for none."""
    there = {info.path for info in await asked.files.list()}
    path, folder = asked.path, asked.files.folder
    for name in (folder.parent.name, folder.name):
        path = path.removeprefix(f"{name}/")
        if path in there and path != asked.path and not asked.version:
            return path
    return ""


def _below(asked: _Asked, kind: str, folder: str | None = None) -> str:
    """What the addresses of files begin with that lie in the folder of the one asked for."""
    folder = asked.path.rpartition("/")[0] if folder is None else folder
    base = f"/chats/{asked.chat.id}/{kind}/"
    return f"{base}{quote(folder, safe='/')}/" if folder else base


def address(chat_id: str, path: str) -> str:
    """Where a file is shown."""
    return f"/chats/{chat_id}/files/{quote(path, safe='/')}"


def _named(chat: Chat) -> dict[str, str]:
    return {"id": chat.id, "title": chat.title}
