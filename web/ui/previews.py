"""How a file of a chat is shown: what it is, its content says; how a text is laid out, its name.

Nothing a file holds is ever part of this server's own page but as text, escaped, or through the
markdown renderer, which takes out what a browser would run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from web.harness.builtin.chat_files import OpenFile
from web.harness.tools.sniff import TEXT
from web.ui.blobs import SHOWN
from web.ui.file_bytes import FRAMED
from web.ui.file_frames import MAX_FRAME_BYTES
from web.ui.json_trees import MAX_BYTES as MAX_TREE_BYTES, json_tree
from web.ui.markdown import render, with_files
from web.ui.markdown.code import code_block
from web.ui.tables import Table, read_table

MAX_MARKDOWN_BYTES = 200_000
MAX_CODE_BYTES = 200_000
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
class Preview:
    """A file as it is shown.

    `html` is there for markdown, code and a tree, `table` for a table. `source` says that it can
    also be seen as it is written. `words` say what is left out, or why nothing is shown.
    """

    kind: Kind
    html: Markup | None = None
    table: Table | None = None
    source: bool = False
    words: str = ""


async def preview(file: OpenFile, path: str, *, source: bool, page: int, files: str) -> Preview:
    """How a file is shown; `source` asks for a text as it is written.

    `page` is of a table, counted from 1. Relative links of a markdown text lead below the address
    `files`.
    """
    if file.media_type in SHOWN:
        return _media(file)
    if file.media_type == "application/pdf":
        return Preview("pdf")
    if file.media_type in FRAMED and not source and _ending(path) not in _MARKDOWN:
        if file.size > MAX_FRAME_BYTES:
            return Preview("none", source=True, words="This page is too large to be shown here.")
        return Preview("frame", source=True)
    if file.media_type in (TEXT, *FRAMED):
        return await asyncio.to_thread(_text, file, path, source, page, files)
    return Preview("none", words="This kind of file is not shown here.")


def _media(file: OpenFile) -> Preview:
    if file.media_type.startswith("audio/"):
        return Preview("audio")
    if file.size > MAX_IMAGE_BYTES:
        return Preview("none", words="This image is too large to be shown here.")
    return Preview("image")


def _text(file: OpenFile, path: str, source: bool, page: int, files: str) -> Preview:
    """Blocks. What cannot be shown as its name says is shown as it is written."""
    ending, shown = _ending(path), None
    if not source:
        if ending in _MARKDOWN and file.size <= MAX_MARKDOWN_BYTES:
            text = file.read_now(0, MAX_MARKDOWN_BYTES).decode("utf-8-sig", "replace")
            html = Markup(with_files(render(text), files))  # noqa: S704 (sanitised)
            shown = Preview("markdown", html)
        elif ending in _TABLES:
            table = read_table(file, page)
            shown = Preview("table", table=table) if table is not None else None
        elif ending in _TREES and file.size <= MAX_TREE_BYTES:
            tree = json_tree(file.read_now(0, MAX_TREE_BYTES))
            shown = Preview("tree", tree) if tree is not None else None
    return _code(file, ending) if shown is None else replace(shown, source=True)


def _code(file: OpenFile, ending: str) -> Preview:
    text = file.read_now(0, MAX_CODE_BYTES).decode("utf-8-sig", "replace")
    words = ""
    if file.size > MAX_CODE_BYTES:
        text = text.removesuffix("\N{REPLACEMENT CHARACTER}")
        words = f"The first {MAX_CODE_BYTES:,} of {file.size:,} bytes. Download it to see all."
    html = code_block(text, _LANGUAGES.get(ending, ending), True)
    return Preview("code", Markup(html), words=words)  # noqa: S704 (escaped or sanitised)


def _ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()
