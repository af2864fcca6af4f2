"""What a growing markdown text is split into.

A text becomes a list of top-level blocks, keyed "0", "1", ... in the order of the text. A block
that is long and still grows is *cut*: it becomes a *shell*, an element with an empty slot, and its
content follows as child blocks, keyed "3-0", "3-1", ... and appended to the slot in that order.
Every block is one element of the page. `web.ui.markdown.render_block` gives its tag, classes and
HTML. A table is always cut; the rows of one group are one `<tbody>`.

======== ============ ======================== ============================================
level    kind         element                  source
======== ============ ======================== ============================================
top      paragraph    div holding the block    markdown
top      fence        div holding the block    the code itself, `info` is the info string
top      markdown     div holding the block    markdown of any other block
shell    paragraphs   div, slot <p>, <h1>, <h2> '' (`info` is the tag)
shell    list         div, slot <ul> or <ol>   '' (`info` is the tag, `start` the first number)
shell    table        div, slot <table>        the header row and the delimiter row
shell    code         div, slot <code>         '' (`info` is the info string)
shell    literal      div, slot <p>            ''
child    span         <span> in paragraphs     markdown of some sentences
child    item         <li> in list             markdown of the item, its marker included
child    rows         <tbody> in table         some rows
child    lines        <span> in code           some lines of code
child    text         <span> in literal        plain text
======== ============ ======================== ============================================

Rules for who keeps blocks:

- Rendering is a pure function of a block. Whatever `MarkdownStream.settle` returns gets a new
  version, even if it equals what was there: when a shell changes, its children are handed out again
  after it, so a page may replace a shell whole and lose nothing.
- `Removed` names one key. A removed shell's children are named as well, before it. A key that was
  removed may come back with other content.
- Between two settles the last keys may change their kind in any way (a paragraph that becomes a
  table, a shell that becomes an uncut block). Keys of closed blocks stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reference = tuple[str, str, str]
"""A link reference definition: normalised label, address, title ('' for none)."""

Kind = Literal[
    "paragraph",
    "fence",
    "markdown",
    "paragraphs",
    "list",
    "table",
    "code",
    "literal",
    "span",
    "item",
    "rows",
    "lines",
    "text",
]

SHELLS = frozenset({"paragraphs", "list", "table", "code", "literal"})


@dataclass(frozen=True, slots=True)
class Block:
    """One element of the page. See the top of this file for `kind` and `source`.

    `open`: the text may still grow here. `loose`: an item of a loose list, whose paragraphs show.
    `head`: what must stand before the source to parse it (the header of a table's rows, a first
    item before an item). `cuts`: offsets into the source of a paragraph or span where no inline
    construct is open, so that it can be rendered in pieces. `references`: the definitions that the
    source may refer to.
    """

    key: str
    parent: str | None
    kind: Kind
    source: str
    open: bool = False
    info: str = ""
    start: int | None = None
    loose: bool = False
    head: str = ""
    cuts: tuple[int, ...] = ()
    references: tuple[Reference, ...] = ()

    @property
    def shell(self) -> bool:
        """Whether children are appended to this block's slot."""
        return self.kind in SHELLS


@dataclass(frozen=True, slots=True)
class Removed:
    """The block of this key is gone."""

    key: str
