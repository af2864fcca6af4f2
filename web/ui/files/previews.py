"""How a file of a chat is shown: what it is, its content says; how a text is laid out, its name.

Nothing a file holds is ever part of this server's own page but as text, escaped, or through the
markdown renderer, which takes out what a browser would run, or as a picture drawn of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from markupsafe import Markup

from web.harness.builtin.chat_files import OpenFile
from web.harness.tools.encodings import MAX_BYTES, may_be_text
from web.harness.tools.picture_faults import picture_fault
from web.harness.tools.sniff import HEAD_BYTES, TEXT, UNKNOWN
from web.harness.tools.threads import run_in_thread
from web.harness.values.text import amount
from web.ui.files.blobs import SHOWN
from web.ui.files.file_bytes import FRAMED
from web.ui.layouts.layouts import (
    MAX_CODE_BYTES,
    MAX_FRAME_BYTES,
    MAX_MARKDOWN_BYTES,
    MAX_TREE_BYTES,
    Laid,
    plain,
)
from web.ui.layouts.places import NOBODY, NotLaidOut, Whose
from web.ui.layouts.tables import Index, Indexes, Table
from web.ui.layouts.workshop import Workshop
from web.ui.markdown.code import is_highlighted

SMALL_BYTES = 16 * 1024
"""What is no larger takes a fraction of a second at worst, and is not worth a process."""
SMALL_MARKDOWN_BYTES = 4 * 1024
"""The same, of markdown, of which a few rows can take long."""
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

_NOT_SHOWN = "This kind of file is not shown here."
_UNCLEAR = (
    "In which encoding this text is cannot be told for sure, so it is not shown. Save it as UTF-8 "
    "to read it here."
)

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
    shown, or not as its name says. `encoding` is how that of a text is called, '' for UTF-8.
    """

    kind: Kind
    html: Markup | None = None
    table: Table | None = None
    pdf: PdfPage | None = None
    source: bool = False
    words: str = ""
    encoding: str = ""


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
        whose: Whose = NOBODY,
    ) -> Preview:
        """How a file is shown; `source` asks for a text as it is written, `whose` page it is for.

        `page` is of a table or PDF, counted from 1. Relative links of a markdown text lead below
        the address `files`, and the bytes of its pictures come from below `pictures`.
        """
        if file.media_type in SHOWN:
            return await _media(file)
        if file.media_type == "application/pdf":
            return await self._pdf(file, page, whose)
        if file.media_type in FRAMED and not source and _ending(path) not in _MARKDOWN:
            if file.size > MAX_FRAME_BYTES:
                words = "This page is too large to be shown here."
                return Preview("none", source=True, words=words)
            return Preview("frame", source=True)
        words = await _why_not(file)
        if words:
            return Preview("none", words=words)
        below = {"files": files, "pictures": pictures}
        work = _Work(self._workshop, file, whose)
        shown = await self._text(work, _ending(path), source, page, below)
        if shown.encoding:
            return replace(shown, words=f"Read as {shown.encoding}. {shown.words}".rstrip())
        if file.media_type == UNKNOWN and shown.kind != "none":
            return Preview("none", words=_UNCLEAR)
        return shown

    async def _text(
        self, work: _Work, ending: str, source: bool, page: int, below: Mapping[str, str]
    ) -> Preview:
        """What cannot be shown as its name says is shown as it is written, with words."""
        try:
            shown = None if source else await self._laid(work, ending, page, below)
            if shown is not None:
                return replace(shown, source=True)
            language = _LANGUAGES.get(ending, ending)
            # Others cost nothing but to be escaped.
            small = work.is_small and not is_highlighted(language)
            return _code(work.file, await work.lay_out("code", small=small, language=language))
        except NotLaidOut as fault:
            return await self._unlaid(work, fault)

    async def _unlaid(self, work: _Work, fault: NotLaidOut) -> Preview:
        """The text as it is written, of what was not laid out."""
        try:
            # Without a language nothing is looked for in it, and it is decoded as far as it shows.
            laid = await work.lay_out("code", small=True, decode=MAX_CODE_BYTES, language="")
        except NotLaidOut:
            return Preview("none", words=fault.words)
        return _code(work.file, laid, f"{fault.words} It is shown as it is written.")

    async def _laid(
        self, work: _Work, ending: str, page: int, below: Mapping[str, str]
    ) -> Preview | None:
        size = work.file.size
        if ending in _MARKDOWN and size <= MAX_MARKDOWN_BYTES:
            laid = await work.lay_out("markdown", small=size <= SMALL_MARKDOWN_BYTES, **below)
            html = Markup(laid.text)  # noqa: S704 (sanitised)
            return Preview("markdown", html, encoding=_encoding(laid))
        if ending in _TABLES:
            return await self._table(work, page)
        if ending in _TREES and size <= MAX_TREE_BYTES:
            laid = await work.lay_out("tree")
            html = Markup(laid.text)  # noqa: S704 (every piece of it is escaped)
            return Preview("tree", html, encoding=_encoding(laid)) if laid.done else None
        return None

    async def _table(self, work: _Work, page: int) -> Preview | None:
        options: dict[str, Any] = {"page": page, "index": None}
        index = self._indexes.get(work.file.sha256)
        if index is not None:
            options["index"] = plain(index)
            if not index.encoding:
                # Only so much of it is read as its page takes.
                options |= {"decode": 0, "small": index.span(page) <= SMALL_SPAN_BYTES}
        laid = await work.lay_out("table", **options)
        if not laid.done:
            return None
        encoding = _encoding(laid)
        if laid.facts["index"]:
            made = Index(**{**laid.facts["index"], "encoding": encoding})
            self._indexes.keep(work.file.sha256, made)
        return Preview("table", table=Table(**laid.facts["table"]), encoding=encoding)

    async def _pdf(self, file: OpenFile, page: int, whose: Whose) -> Preview:
        try:
            laid = await self._workshop.lay_out("pdf", file, whose=whose, page=page)
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


@dataclass(frozen=True, slots=True)
class _Work:
    """Lays one file out for somebody; a text may be in another encoding."""

    workshop: Workshop
    file: OpenFile
    whose: Whose

    async def lay_out(self, layout: str, **options: Any) -> Laid:
        """What `options` leave open is as it suits the file."""
        usual = {"small": self.is_small, "decode": self._decode}
        return await self.workshop.lay_out(
            layout, self.file, whose=self.whose, **{**usual, **options}
        )

    @property
    def is_small(self) -> bool:
        return self.file.size <= SMALL_BYTES

    @property
    def _decode(self) -> int:
        return 0 if self.file.media_type in FRAMED else MAX_BYTES


async def _why_not(file: OpenFile) -> str:
    """Why a file is not shown as text, as far as its start and size say; '' for one that is."""
    if file.media_type != UNKNOWN:
        return "" if file.media_type in (TEXT, *FRAMED) else _NOT_SHOWN
    if not may_be_text(await file.read(0, HEAD_BYTES)):
        return _NOT_SHOWN
    if file.size > MAX_BYTES:
        return f"Text that is not in UTF-8 is shown up to {amount(MAX_BYTES)}."
    return ""


def _encoding(laid: Laid) -> str:
    return str(laid.facts.get("encoding", ""))


def _code(file: OpenFile, laid: Laid, words: str = "") -> Preview:
    if file.size > MAX_CODE_BYTES:
        cut = f"The first {MAX_CODE_BYTES:,} of {file.size:,} bytes. Download it to see all."
        words = f"{words} {cut}".lstrip()
    html = Markup(laid.text)  # noqa: S704 (escaped or sanitised)
    return Preview("code", html, words=words, encoding=_encoding(laid))


def _ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()
