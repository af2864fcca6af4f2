"""How the content of a file is laid out: work that may take long, whatever it is asked of.

Each layout is a function of a file and a few plain values, so that a thread does it for a small
file and a process of its own for another (see `workshop.py`). What one of them needs it loads when
it is asked, since the process does one and ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

MAX_MARKDOWN_BYTES = 200_000
MAX_CODE_BYTES = 200_000
MAX_TREE_BYTES = 5 * 1024 * 1024
MAX_FRAME_BYTES = 10 * 1024 * 1024


class Readable(Protocol):
    """An open file; `descriptor` is for reading by position."""

    @property
    def size(self) -> int: ...

    @property
    def descriptor(self) -> int: ...

    def read_now(self, start: int, size: int) -> bytes:
        """At most `size` bytes from `start` on; fewer only at the end of the file. Blocks."""
        ...


@dataclass(frozen=True, slots=True)
class ByDescriptor:
    """An open file of which no more is known."""

    descriptor: int
    size: int

    def read_now(self, start: int, size: int) -> bytes:
        pieces: list[bytes] = []
        while size > 0 and (piece := os.pread(self.descriptor, size, start)):
            pieces.append(piece)
            start, size = start + len(piece), size - len(piece)
        return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Laid:
    """What came of it: `facts` that JSON can hold, and a text.

    Without `done` the file is not what it was taken for.
    """

    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    done: bool = True


NOT_DONE = Laid(done=False)


def laid_out(layout: str, file: Readable, *, decode: int = 0, **options: Any) -> Laid:
    """One of `LAYOUTS` of a file.

    With `decode` it may be a text in another encoding, of which at most so many bytes are used.
    The facts then have its `encoding`, as it is called, and its `size` in UTF-8, in bytes.
    """
    work = LAYOUTS[layout]
    if not decode:
        return work(file, **options)
    from web.harness.tools.encodings import utf8_copy

    with utf8_copy(file.descriptor, decode) as copy:
        if copy is None:
            return work(file, **options)
        descriptor, size, encoding = copy
        laid = work(ByDescriptor(descriptor, size), **options)
        return replace(laid, facts={**laid.facts, "encoding": encoding, "size": size})


def _markdown(file: Readable, *, files: str, pictures: str = "") -> Laid:
    from web.ui.markdown import render, with_files

    return Laid(with_files(render(_text(file, MAX_MARKDOWN_BYTES)), files, pictures))


def _code(file: Readable, *, language: str) -> Laid:
    from web.ui.markdown.code import code_block

    # Where it was cut, a character may be, too.
    text = _text(file, MAX_CODE_BYTES)
    if file.size > MAX_CODE_BYTES:
        text = text.removesuffix("\N{REPLACEMENT CHARACTER}")
    return Laid(code_block(text, language, bool(language)))


def _tree(file: Readable) -> Laid:
    from web.ui.layouts.json_trees import json_tree

    tree = json_tree(file.read_now(0, MAX_TREE_BYTES))
    return NOT_DONE if tree is None else Laid(tree)


def _table(file: Readable, *, page: int, index: Mapping[str, Any] | None) -> Laid:
    from web.ui.layouts.tables import Index, read_index, read_page

    known = Index(**index) if index is not None else read_index(file)
    table = read_page(file, known, page) if known is not None else None
    if known is None or table is None:
        return NOT_DONE
    made = plain(known) if index is None else None
    return Laid(facts={"table": plain(table), "index": made})


def _page(file: Readable) -> Laid:
    from web.ui.layouts.framed_html import inert_page

    html = inert_page(_text(file, MAX_FRAME_BYTES))
    return NOT_DONE if html is None else Laid(html)


def _pdf(file: Readable, *, page: int) -> Laid:
    from web.ui.layouts.pdf_pages import pdf_page

    return pdf_page(file, page)


LAYOUTS: Mapping[str, Callable[..., Laid]] = {
    "markdown": _markdown,
    "code": _code,
    "tree": _tree,
    "table": _table,
    "page": _page,
    "pdf": _pdf,
}


def plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as they are; `asdict` copies each row of a table."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _text(file: Readable, limit: int) -> str:
    return file.read_now(0, limit).decode("utf-8-sig", "replace")
