"""A whole text at once, for what does not grow."""

from __future__ import annotations

from markdown_it.token import Token

from web.chats.markdown import Limits, Reference
from web.chats.markdown.code import literal_end
from web.chats.markdown.limits import DEFAULT
from web.chats.markdown.parser import overflow, parse, parse_before
from web.chats.markdown.references import mentions, resolved
from web.chats.markdown.stream import Spaces, clean

from .blocks import blocks_html, literal_html


def render(text: str, limits: Limits = DEFAULT) -> str:
    """Safe HTML of a markdown text: what its blocks show when it is streamed, without cuts."""
    text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = Spaces(limits).feed(text)
    known: dict[str, tuple[str, str]] = {}
    parts: list[list[Token] | str] = []
    place = 0
    while place < len(text):
        rest = text[place:]
        parsed = parse(rest, known, limits)
        over = overflow(parsed, rest, limits)
        if over:
            parsed = parse_before(rest, over, known, limits)
        known |= parsed.definitions
        parts += [list(top.tokens) for top in parsed.tops]
        if over is None:
            break
        begin, crossed = over
        end = literal_end(rest[begin:], crossed - begin)
        literal = rest[begin:] if end is None else rest[begin : begin + end]
        parts.append(literal.rstrip("\n"))
        place += begin + len(literal)
    html = []
    for part in parts:
        if isinstance(part, str):
            html.append(literal_html(part))
        else:
            html.append(blocks_html(part, _references(part, known), limits))
    return "".join(html)


def _references(tokens: list[Token], known: dict[str, tuple[str, str]]) -> tuple[Reference, ...]:
    if not known:
        return ()
    labels = [label for token in tokens for label in mentions(token.content)]
    return resolved(list(dict.fromkeys(labels)), known)
