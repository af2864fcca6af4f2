"""Cutting a paragraph where nothing is open changes nothing of what it shows."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from tests.ui.markdown.corpus import ATOMS, TEXTS
from web.chats.markdown.inline import InlineScanner, too_heavy
from web.ui.markdown.inline import pieces_html

REFERENCES = (("A", "http://example.com/", ""), ("LATER", "http://example.com/", "t"))
WORDS = [
    *(
        "word ",
        "two words ",
        "*",
        "**",
        "_",
        "__",
        "~~",
        "`",
        "``",
        "[",
        "]",
        "(",
        ")",
        "![",
        "](u) ",
    ),
    *(
        "](http://x.y/a_b) ",
        "[a] ",
        "[a][later] ",
        "<br> ",
        "<http://q.r/`*> ",
        "$",
        "$$",
        "$x y$ ",
    ),
    *(
        "\\(",
        "\\) ",
        "\\[",
        "\\]",
        "\\",
        "\n",
        "  \n",
        "http://x.y/*a ",
        "http://x.y/a*b_ ",
        "'",
        '"',
    ),
    *(
        "www.a.com ",
        "a@b.c ",
        ". ",
        ", ",
        "&amp; ",
        "<",
        "> ",
        "*a* ",
        "**b c** ",
        "`d e` ",
        "a*b*c ",
    ),
    *("_x_ ", "5 ", "$5 ", " ", "é", "中文。然", '" t")', "(a (b) c)", "~", "***"),
]


def whole_and_cut(content: str) -> tuple[str, str, list[int]]:
    scanner = InlineScanner(shortest=1)
    scanner.scan(content)
    whole = pieces_html(content, (), REFERENCES)
    return whole, pieces_html(content, scanner.cuts, REFERENCES), scanner.cuts


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\0", "").split("\n\n") if part.strip()]


@pytest.mark.parametrize("text", TEXTS)
def test_the_corpus_shows_the_same_cut_and_whole(text: str) -> None:
    for content in paragraphs(text.encode(errors="ignore").decode().replace("\r", "")):
        whole, cut, _ = whole_and_cut(content)
        assert cut.replace("&nbsp;", "\xa0") == whole.replace("&nbsp;", "\xa0")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS + ATOMS), min_size=2, max_size=30).map("".join))
def test_any_inline_mixture_shows_the_same_cut_and_whole(text: str) -> None:
    for content in paragraphs(text.replace("\r", "")):
        if not too_heavy(content):
            whole, cut, _ = whole_and_cut(content)
            assert cut.replace("&nbsp;", "\xa0") == whole.replace("&nbsp;", "\xa0")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=20, max_size=400).map("".join), st.integers(0, 99))
def test_cuts_do_not_depend_on_the_pieces_a_text_came_in(text: str, seed: int) -> None:
    whole, grown, random = InlineScanner(), InlineScanner(), Random(seed)
    whole.scan(text)
    place = 0
    while place < len(text):
        place = min(place + random.choice([1, 2, 7, 40, 300]), len(text))
        grown.scan(text[:place])
    assert grown.cuts == whole.cuts


def test_a_plain_text_is_cut_into_short_pieces() -> None:
    scanner = InlineScanner()
    scanner.scan("Some **bold** words, `code` and [links](http://x.y) in a text. " * 20)
    places = [0, *scanner.cuts]
    assert max(b - a for a, b in pairwise(places)) < 130


def test_what_never_closes_is_cut_all_the_same() -> None:
    scanner = InlineScanner()
    scanner.scan("*open " * 2000)
    assert scanner.cuts
    assert too_heavy(("*open " * 2000)[: scanner.cuts[0]])
