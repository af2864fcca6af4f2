"""Blocks to HTML. The result is safe to put into a page as it is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from markdown_it.token import Token

from web.chats.markdown import Block, Limits, Reference
from web.chats.markdown.limits import DEFAULT
from web.chats.markdown.parser import cells, grammar
from web.chats.markdown.white import BLANK, trimmed_end

from .code import code_block, frame, plain_code
from .formulas import formula
from .inline import inline_html, pieces_html

SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="Table">'
_SLOT = ' data-slot=""'
_FENCE = re.compile("```|~~~")
_PLAIN_ITEM = re.compile(
    r"[ ]{0,3}(?:[-+*]|\d{1,9}[.)])[ ]{1,4}((?:[A-Za-z]|\*\*[A-Za-z])[^\n]*)\n*"
)
"""An item that is one line of text: there is nothing to parse but the text."""
_ALIGN = {
    "text-align:left": ' class="align-left"',
    "text-align:center": ' class="align-center"',
    "text-align:right": ' class="align-right"',
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """An element of the page: `<tag class="classes">before + children + after</tag>`.

    `tag` is `div` for a top-level block, else `li`, `tbody` or `span`. `classes` may be ''. In a
    shell exactly one element of `before` has the attribute `data-slot=""`, and `after` begins with
    the end of that element; for any other block `after` is ''.
    """

    tag: str
    classes: str
    before: str
    after: str = ""


async def prepare_block(block: Block, limits: Limits = DEFAULT) -> None:
    """Highlights the code of a block in a thread, so that `render_block` finds it done.

    A long one takes 50 ms, and the first one of some languages 0.3 s.
    """
    if block.kind == "fence" and _is_highlighted(block, limits):
        await asyncio.to_thread(code_block, block.source, block.info, True)
    elif block.kind in ("markdown", "item") and _FENCE.search(block.source):
        await asyncio.to_thread(render_block, block, limits)


def render_block(block: Block, limits: Limits = DEFAULT) -> Rendered:
    """One block. Equal blocks render equally."""
    source, references = block.source, block.references
    match block.kind:
        case "paragraph":
            return Rendered("div", "md", f"<p>{pieces_html(source, block.cuts, references)}</p>")
        case "span":
            return Rendered("span", "", pieces_html(source, block.cuts, references))
        case "fence":
            highlight = _is_highlighted(block, limits)
            return Rendered("div", "md", code_block(source, block.info, highlight))
        case "lines" | "text":
            return Rendered("span", "", plain_code(source))
        case "markdown":
            tokens = _tokens(source, limits)
            return Rendered("div", "md", blocks_html(tokens, references, limits, block.open))
        case "item":
            return _item(block, limits)
        case "rows":
            starts = _cell_starts(block.head, limits)
            rows = (_row(line, starts, references) for line in source.rstrip("\n").split("\n"))
            return Rendered("tbody", "", "".join(rows))
        case "paragraphs":
            return Rendered("div", "md", f"<{block.info}{_SLOT}>", f"</{block.info}>")
        case "list":
            start = "" if block.start is None else f' start="{block.start}"'
            return Rendered("div", "md", f"<{block.info}{start}{_SLOT}>", f"</{block.info}>")
        case "table":
            tokens = _tokens(source, limits)
            head = tokens[1 : _index(tokens, "thead_close") + 1]
            before = f"{SCROLL}<table{_SLOT}>{blocks_html(head, references, limits)}"
            return Rendered("div", "md", before, "</table></div>")
        case "code":
            return Rendered("div", "md", *frame(block.info, _SLOT))
        case "literal":
            return Rendered("div", "md", f'<p class="literal"{_SLOT}>', "</p>")


def blocks_html(
    tokens: Sequence[Token],
    references: tuple[Reference, ...],
    limits: Limits,
    open_: bool = False,
) -> str:
    """The HTML of block tokens. `open_`: code at the very end still grows and stays plain."""
    parts: list[str] = []
    for token in tokens:
        match token.type:
            case "inline":
                parts.append(inline_html(token.content, references))
            case "fence" | "code_block":
                code = token.content
                growing = open_ and _is_last(token, tokens)
                highlight = not growing and len(code) <= limits.highlight
                parts.append(code_block(code, token.info, highlight))
            case "math_block":
                parts.append(_math_block(token))
            case "list_item_open":
                parts.append(_item_start(token))
            case "ordered_list_open":
                start = token.attrs.get("start")
                parts.append("<ol>" if start is None else f'<ol start="{int(start)}">')
            case "table_open":
                parts.append(SCROLL + "<table>")
            case "table_close":
                parts.append("</table></div>")
            case "th_open" | "td_open":
                parts.append(f"<{token.tag}{_ALIGN.get(str(token.attrs.get('style')), '')}>")
            case "hr":
                parts.append("<hr>")
            case _ if not token.hidden:
                parts.append(f"</{token.tag}>" if token.nesting < 0 else f"<{token.tag}>")
    return "".join(parts)


def literal_html(text: str) -> str:
    """A block beyond the limits, as it stands."""
    return f'<p class="literal">{plain_code(text)}</p>'


@lru_cache(maxsize=256)
def _is_highlighted(block: Block, limits: Limits) -> bool:
    return not block.open and len(block.source) <= limits.highlight


def _cell_starts(head: str, limits: Limits) -> tuple[str, ...]:
    """The opening tag of each cell of a row under this header."""
    cells_ = [token for token in _tokens(head, limits) if token.type == "th_open"]
    return tuple(f"<td{_ALIGN.get(str(token.attrs.get('style')), '')}>" for token in cells_)


def _row(line: str, starts: tuple[str, ...], references: tuple[Reference, ...]) -> str:
    """A row's HTML, remembered if it is short."""
    known = references if "[" in line else ()
    render_row = row_html if len(line) <= 400 else row_html.__wrapped__
    return render_row(line, starts, known)


@lru_cache(maxsize=2048)
def row_html(line: str, starts: tuple[str, ...], references: tuple[Reference, ...]) -> str:
    """One row of a table's body."""
    filled = zip_longest(starts, cells(line)[: len(starts)], fillvalue="")
    return "<tr>" + "".join(f"{s}{inline_html(c, references)}</td>" for s, c in filled) + "</tr>"


def _item(block: Block, limits: Limits) -> Rendered:
    """A list item, parsed after another one, so that it is read as an item in any case."""
    plain = _PLAIN_ITEM.fullmatch(block.source)
    if plain:
        text = inline_html(trimmed_end(plain.group(1)), block.references)
        return Rendered("li", "", f"<p>{text}</p>" if block.loose else text)
    tokens = _tokens(block.head + block.source, limits)
    begins = [i for i, token in enumerate(tokens) if token.level == 1 and token.nesting == 1]
    end = next(
        i
        for i in range(begins[1] + 1, len(tokens))
        if tokens[i].level == 1 and tokens[i].nesting == -1
    )
    for token in tokens[begins[1] : end]:
        if token.level == 2 and token.type in ("paragraph_open", "paragraph_close"):
            token.hidden = not block.loose
    opening = tokens[begins[1]]
    inner = blocks_html(tokens[begins[1] + 1 : end], block.references, limits, block.open)
    return Rendered("li", "task" if "checked" in opening.meta else "", _checkbox(opening) + inner)


def _item_start(token: Token) -> str:
    return f'<li class="task">{_checkbox(token)}' if "checked" in token.meta else "<li>"


def _checkbox(token: Token) -> str:
    if "checked" not in token.meta:
        return ""
    if token.meta["checked"]:
        return '<input type="checkbox" disabled checked aria-label="Done"> '
    return '<input type="checkbox" disabled aria-label="To do"> '


def _math_block(token: Token) -> str:
    source = token.content
    if not token.info:
        return literal_html(source.rstrip("\n"))
    body = source.strip(BLANK)[2:-2]
    return f'<div class="math" tabindex="0">{formula(body, True)}</div>'


def _tokens(source: str, limits: Limits) -> list[Token]:
    tokens: list[Token] = []
    parser = grammar(limits)
    parser.block.parse(source, parser, {"references": {}}, tokens)
    return tokens


def _index(tokens: Sequence[Token], kind: str) -> int:
    return next(index for index, token in enumerate(tokens) if token.type == kind)


def _is_last(token: Token, tokens: Sequence[Token]) -> bool:
    """Whether nothing but closing tokens comes after this one."""
    return all(later.nesting < 0 for later in tokens[tokens.index(token) + 1 :])
