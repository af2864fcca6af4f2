"""How a file of a chat is shown: what it is, its content says; how a text is laid out, its name.

Nothing a file holds is ever part of this server's own page but as text, escaped, or through the
markdown renderer, which takes out what a browser would run, or as a picture drawn of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from web.harness.builtin.chat_files import OpenFile, on_disk
from web.harness.tools.encodings import MAX_BYTES, may_be_text, utf8_copy
from web.harness.tools.picture_faults import picture_fault
from web.harness.tools.sniff import HEAD_BYTES, TEXT, UNKNOWN
from web.harness.tools.threads import run_in_thread
from web.harness.values.text import amount
from web.ui.blobs import SHOWN
from web.ui.file_bytes import FRAMED
from web.ui.layouts import (
    MAX_CODE_BYTES,
    MAX_FRAME_BYTES,
    MAX_MARKDOWN_BYTES,
    MAX_TREE_BYTES,
    plain,
)
from web.ui.tables import Index, Indexes, Table
from web.ui.workshop import NotLaidOut, Workshop

SMALL_BYTES = 16 * 1024
"""What is no larger takes a fraction of a second at worst, and is not worth a process."""
SMALL_SPAN_BYTES = 256 * 1024
"""The same, of a table whose places are known."""
MAX_IMAGE_BYTES = 20 * 1024 * 1024

_MARKDOWN = ("md", "markdown")
_TABLES = ("csv", "tsv")
_TREES = ("json", "geojson", "webmanifest")
_LANGUAGES = {
    "py": "python", "js": "javascript", "mjs": "javascript", "ts": "typescript", "rb": "ruby",
    "rs": "rust", "kt": "kotlin", "cs": "csharp", "h": "c", "hpp": "cpp", "cc": "cpp",
    "yml": "yaml", "htm": "html", "svg": "xml", "ps1": "powershell", "bat": "batch",
    "md": "markdown", "markdown": "markdown", "jsonl": "json", "geojson": "json",
}  # fmt: skip

Kind = Literal["markdown", "code", "table", "tree", "image", "audio", "frame", "pdf", "none"]


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A page of a PDF: its picture as PNG in base64, so wide and high in pixels, and its words.

    There is no picture of a broken page. `more` says that the words go on.
    """

    picture: str
    page: int
    pages: int
    width: int = 0
    height: int = 0
    words: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """A file as it is shown.

    `html` is there for markdown, code and a tree, `table` for a table, `pdf` for a PDF. `source`
    says that it can also be seen as it is written. `words` say what is left out, or why it is not
    shown, or not as its name says.
    """

    kind: Kind
    html: Markup | None = None
    table: Table | None = None
    pdf: PdfPage | None = None
    source: bool = False
    words: str = ""


class Previews:
    """Makes previews; what takes long is done in a workshop and not in this process."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._indexes = Indexes()

    async def of(
        self,
        file: OpenFile,
        path: str,
        *,
        source: bool,
        page: int,
        files: str,
        pictures: str = "",
    ) -> Preview:
        """How a file is shown; `source` asks for a text as it is written.

        `page` is of a table or PDF, counted from 1. Relative links of a markdown text lead below
        the address `files`, and the bytes of its pictures come from below `pictures`.
        """
        if file.media_type in SHOWN:
            return await _media(file)
        if file.media_type == "application/pdf":
            return await self._pdf(file, page)
        if file.media_type in FRAMED and not source and _ending(path) not in _MARKDOWN:
            if file.size > MAX_FRAME_BYTES:
                words = "This page is too large to be shown here."
                return Preview("none", source=True, words=words)
            return Preview("frame", source=True)
        below = {"files": files, "pictures": pictures}
        if file.media_type in (TEXT, UNKNOWN):
            async with _in_utf8(file) as (text, encoding):
                if encoding:
                    shown = await self._text(text, _ending(path), source, page, below)
                    return replace(shown, words=f"Read as {encoding}. {shown.words}".rstrip())
        if file.media_type in (TEXT, *FRAMED):
            return await self._text(file, _ending(path), source, page, below)
        return Preview("none", words=await _why_not(file))

    async def _text(
        self, file: OpenFile, ending: str, source: bool, page: int, below: Mapping[str, str]
    ) -> Preview:
        """What cannot be shown as its name says is shown as it is written, with words."""
        try:
            shown = None if source else await self._laid(file, ending, page, below)
            if shown is not None:
                return replace(shown, source=True)
            language = _LANGUAGES.get(ending, ending)
            small = file.size <= SMALL_BYTES
            laid = await self._workshop.lay_out("code", file, small=small, language=language)
            return _code(file, laid.text)
        except NotLaidOut as fault:
            # Without a language nothing is looked for in it.
            laid = await self._workshop.lay_out("code", file, small=True, language="")
            return _code(file, laid.text, f"{fault.words} It is shown as it is written.")

    async def _laid(
        self, file: OpenFile, ending: str, page: int, below: Mapping[str, str]
    ) -> Preview | None:
        lay_out, small = self._workshop.lay_out, file.size <= SMALL_BYTES
        if ending in _MARKDOWN and file.size <= MAX_MARKDOWN_BYTES:
            laid = await lay_out("markdown", file, small=small, **below)
            return Preview("markdown", Markup(laid.text))  # noqa: S704 (sanitised)
        if ending in _TABLES:
            table = await self._table(file, page)
            return Preview("table", table=table) if table is not None else None
        if ending in _TREES and file.size <= MAX_TREE_BYTES:
            laid = await lay_out("tree", file, small=small)
            html = Markup(laid.text)  # noqa: S704 (every piece of it is escaped)
            return Preview("tree", html) if laid.done else None
        return None

    async def _table(self, file: OpenFile, page: int) -> Table | None:
        index = self._indexes.get(file.sha256)
        small = index.span(page) <= SMALL_SPAN_BYTES if index else file.size <= SMALL_BYTES
        known = plain(index) if index else None
        laid = await self._workshop.lay_out("table", file, small=small, page=page, index=known)
        if not laid.done:
            return None
        if laid.facts["index"]:
            self._indexes.keep(file.sha256, Index(**laid.facts["index"]))
        return Table(**laid.facts["table"])

    async def _pdf(self, file: OpenFile, page: int) -> Preview:
        try:
            laid = await self._workshop.lay_out("pdf", file, page=page)
        except NotLaidOut as fault:
            return Preview("pdf", words=f"{fault.words} Download it to read it.")
        facts = dict(laid.facts)
        words = facts.pop("fault", "")
        shown = None if "page" not in facts else PdfPage(picture=laid.text, **facts)
        return Preview("pdf", pdf=shown, words=words)


async def _media(file: OpenFile) -> Preview:
    if file.media_type.startswith("audio/"):
        return Preview("audio")
    if file.size > MAX_IMAGE_BYTES:
        return Preview("none", words="This image is too large to be shown here.")
    data = await file.read(0, MAX_IMAGE_BYTES)
    fault = await run_in_thread(lambda: picture_fault(data))
    if fault:
        words = f"This picture is broken and shows in part, or not at all: {fault}."
        return Preview("image", words=words)
    return Preview("image")


@asynccontextmanager
async def _in_utf8(file: OpenFile) -> AsyncIterator[tuple[OpenFile, str]]:
    """The same text in UTF-8, and how the encoding is called that it is in, '' for the file
    itself."""
    with ExitStack() as stack:
        copying = utf8_copy(file.descriptor)
        copy = await on_disk(lambda: stack.enter_context(copying))
        if copy is None:
            yield file, ""
        else:
            descriptor, size, encoding = copy
            yield OpenFile(descriptor, size, file.changed_at, file.sha256, TEXT), encoding


async def _why_not(file: OpenFile) -> str:
    if not may_be_text(await file.read(0, HEAD_BYTES)):
        return "This kind of file is not shown here."
    if file.size > MAX_BYTES:
        return f"Text that is not in UTF-8 is shown up to {amount(MAX_BYTES)}."
    return (
        "In which encoding this text is cannot be told for sure, so it is not shown. Save it as "
        "UTF-8 to read it here."
    )


def _code(file: OpenFile, html: str, words: str = "") -> Preview:
    if file.size > MAX_CODE_BYTES:
        cut = f"The first {MAX_CODE_BYTES:,} of {file.size:,} bytes. Download it to see all."
        words = f"{words} {cut}".lstrip()
    return Preview("code", Markup(html), words=words)  # noqa: S704 (escaped or sanitised)


def _ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()
