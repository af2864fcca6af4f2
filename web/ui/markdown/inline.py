"""Inline markup to HTML, piece by piece, so that a growing paragraph costs what is new in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import Any

from linkify_it import LinkifyIt
from linkify_it.main import Match
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from web.chats.markdown import Reference
from web.chats.markdown.inline import InlineScanner, math_at, too_heavy

from .formulas import formula
from .links import address, file_address, image_link, link_start, web_address
from .sanitiser import clean_inline

_MARKUP = re.compile(r"[`*_~\[\]<&$\\@]|://|mailto:|www\.|[ ]{2}\n", re.IGNORECASE)
_ADDRESS = re.compile(r"www\.|@|://|mailto:", re.IGNORECASE)
_BREAK = re.compile(r"<br[ \t]?/?>", re.IGNORECASE)
_LINE_END = re.compile(r" ?\n[ \t]*")
_REMEMBERED = 1000
_SIMPLE = {
    "em_open": "<em>",
    "em_close": "</em>",
    "strong_open": "<strong>",
    "strong_close": "</strong>",
    "s_open": "<s>",
    "s_close": "</s>",
    "softbreak": "\n",
    "hardbreak": "<br>",
}


def inline_html(content: str, references: tuple[Reference, ...]) -> str:
    """The inline content of a paragraph, heading or cell, already stripped."""
    if len(content) < 64:
        return _segment(content, references)
    scanner = InlineScanner()
    scanner.scan(content)
    return pieces_html(content, scanner.cuts, references)


def pieces_html(content: str, cuts: Sequence[int], references: tuple[Reference, ...]) -> str:
    """As `inline_html`, where it is known how to cut."""
    places = pairwise((0, *cuts, len(content)))
    return "".join(_segment(content[start:end], references) for start, end in places)


def _segment(segment: str, references: tuple[Reference, ...]) -> str:
    """A segment's HTML, remembered if it is short: a hostile text shall not fill the memory."""
    known = references if "[" in segment else ()
    if len(segment) > _REMEMBERED:
        return segment_html.__wrapped__(segment, known)
    return segment_html(segment, known)


@lru_cache(maxsize=4096)
def segment_html(segment: str, references: tuple[Reference, ...]) -> str:
    """One piece between two cuts. What is too heavy to parse is plain text."""
    if _MARKUP.search(segment) is None:
        html = escape(segment, quote=False)
        return _LINE_END.sub("\n", html) if "\n" in html else html
    if too_heavy(segment):
        return escape(segment, quote=False)
    known = {label: {"href": href, "title": title} for label, href, title in references}
    tokens = _parser().parseInline(segment, {"references": known})[0].children or []
    return clean_inline(tokens_html(tokens))


def tokens_html(tokens: Sequence[Token]) -> str:
    """HTML that still has to be cleaned."""
    parts: list[str] = []
    links: list[bool] = []
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                parts.append(escape(token.content, quote=False))
            case "code_inline":
                parts.append(f"<code>{escape(token.content, quote=False)}</code>")
            case "link_open":
                href = address(str(token.attrs.get("href", "")))
                links.append(href is not None)
                if href is not None:
                    parts.append(link_start(href, str(token.attrs.get("title", ""))))
            case "link_close":
                if links.pop():
                    parts.append("</a>")
            case "image":
                parts.append(_image(token, any(links)))
            case "math_inline":
                parts.append(formula(token.content, token.markup == "display"))
            case kind:
                parts.append(_SIMPLE[kind])
    return "".join(parts)


def _image(token: Token, linked: bool) -> str:
    alt = _plain(token.children or [])
    source = str(token.attrs.get("src", ""))
    href = web_address(source) or file_address(source)
    if href is None or linked:
        return escape(alt or "image", quote=False)
    return image_link(href, alt)


def _plain(tokens: Sequence[Token]) -> str:
    """The text of tokens without their markup."""
    return "".join(
        _plain(token.children)
        if token.children
        else "\n"
        if token.type.endswith("break")
        else token.content
        for token in tokens
    )


class _Addresses(LinkifyIt):  # type: ignore[misc]
    """Addresses in plain text: those with a scheme, www. and mail; not every word with a dot."""

    def pretest(self, text: str) -> bool:
        return _ADDRESS.search(text) is not None

    def match(self, text: str) -> list[Match] | None:
        found = super().match(text) or []
        return [link for link in found if link.schema or link.text.lower().startswith("www.")]


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "maxNesting": 32})
    parser.linkify = _Addresses()
    parser.enable(["strikethrough", "linkify"]).disable("html_inline")
    parser.inline.ruler.before("escape", "math_inline", _math)
    parser.inline.ruler.before("autolink", "break", _break)
    # Every address is parsed as one; which of them become links is decided in links.py.
    parser.validateLink = _any_address  # type: ignore[method-assign]
    return parser


def _any_address(url: str) -> bool:
    return True


def _math(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = math_at(state.src, state.pos, state.posMax)
    if found is None:
        if not state.src.startswith("$$", state.pos):
            return False
        if not silent:
            state.pending += "$$"
        state.pos += 2
        return True
    source, display, end = found
    if not silent:
        token: Any = state.push("math_inline", "math", 0)
        token.content = source
        token.markup = "display" if display else ""
    state.pos = end
    return True


def _break(state: StateInline, silent: bool) -> bool:
    found = _BREAK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True
