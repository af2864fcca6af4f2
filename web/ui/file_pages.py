"""The pages of a chat's files: a preview of each, the list with a search, and what brings one back.

Bytes come from `/chats/{id}/raw/{path}`, all of them from `/chats/{id}/files.zip`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.made import made, shown_file, shown_versions
from web.harness.builtin.chat_files import ChatFiles, OpenFile
from web.harness.builtin.versions import Origin, Version
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound
from web.ui.chat_zips import chat_zip
from web.ui.file_bytes import FRAMED, file_response
from web.ui.file_frames import frame_response
from web.ui.form_data import Fields
from web.ui.forms import leave, of_a_chat, stay
from web.ui.middleware import CONTENT_SECURITY_POLICY
from web.ui.pages import theme_of
from web.ui.previews import Previews
from web.ui.services import UiServices
from web.ui.workshop import Workshop

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
        Route(
            "/chats/{chat_id}/restore-file", of_a_chat(services, pages.restore), methods=["POST"]
        ),
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
        )

    async def shown(self, request: Request) -> Response:
        """The preview of a file, or of one of its versions; of a deleted one its versions."""
        asked = self._asked(request)
        versions = await asked.files.versions(asked.path)
        current = versions[-1] if versions else None
        if current is not None and current.gone and not asked.version:
            return await self._page(request, asked, versions, None)
        async with asked.open() as file:
            page = request.query_params.get("page", "")
            source = request.query_params.get("as") == "source"
            shown = await self._previews.of(
                file,
                asked.path,
                source=source,
                page=int(page) if page.isdecimal() and len(page) < 10 else 1,
                files=address(asked.chat.id, asked.path.rpartition("/")[0]).rstrip("/") + "/",
            )
            return await self._page(request, asked, versions, file, preview=shown, source=source)

    async def raw(self, request: Request) -> Response:
        """The bytes, to be saved; with `show` for an image or a player of a page."""
        asked = self._asked(request)
        inline = request.query_params.get("show") == "1"
        return await file_response(request, asked.open(), asked.name, inline=inline)

    async def framed(self, request: Request) -> Response:
        """What a page shows in a frame."""
        asked = self._asked(request)
        async with asked.open() as file:
            if file.media_type not in FRAMED:
                raise NotFound("This file is not shown in a frame.")
            return await frame_response(file, self._workshop)

    async def zip(self, request: Request) -> Response:
        """All files; with `record` the whole chat."""
        return await chat_zip(
            self._services,
            self._chat(request),
            whole=request.query_params.get("record") == "1",
            head=request.method == "HEAD",
        )

    async def restore(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """Brings a version back, also of a file that was deleted."""
        path, number = fields.get("path", ""), fields.get("version", "")
        if not number.isdecimal() or len(number) > 9:
            raise NotFound("There is no such version.")
        files = self._services.files(chat)
        await files.restore(path, int(number), Origin("restore"))
        await self._services.chats.files.look(chat)
        if fields.get("from") == "page":
            return leave(request, address(chat.id, path))
        return stay(request, chat)

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
        if not asked.version and file is not None and last and last.sha256 == file.sha256:
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

    async def _html(self, request: Request, name: str, **context: Any) -> Response:
        template = self._services.templates.get_template(f"pages/{name}.html")

        def html() -> bytes:
            return template.render(theme=theme_of(request), **context).encode(errors="replace")

        # A page of a table may have some ten thousand cells.
        content = await run_in_thread(html)
        return HTMLResponse(content, headers={"content-security-policy": _POLICY})

    def _chat(self, request: Request) -> Chat:
        identity = self._services.identify(request)
        return self._services.chats.get(identity, request.path_params["chat_id"])

    def _asked(self, request: Request) -> _Asked:
        chat = self._chat(request)
        number = request.query_params.get("version", "")
        if number and (not number.isdecimal() or len(number) > 9):
            raise NotFound("There is no such version.", hint="The file's page lists those kept.")
        path = request.path_params["path"]
        return _Asked(chat, self._services.files(chat), path, int(number or 0))


def address(chat_id: str, path: str) -> str:
    """Where a file is shown."""
    return f"/chats/{chat_id}/files/{quote(path, safe='/')}"


def _named(chat: Chat) -> dict[str, str]:
    return {"id": chat.id, "title": chat.title}
