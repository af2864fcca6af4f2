"""Whatever the text is, the HTML holds nothing but what is on the list."""

# ruff: noqa: E501  (hostile texts stand in one piece)

from __future__ import annotations

import re
from html.parser import HTMLParser
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from tests.ui.markdown.corpus import ATOMS, TEXTS, examples
from tests.ui.markdown.streamed import stream
from web.chats.markdown import Limits
from web.ui.markdown import render

TAGS = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "hr", "br", "input"),
    *("table", "thead", "tbody", "tr", "th", "td", "div", "header", "span", "button", "pre"),
    *("code", "a", "em", "strong", "s", "small"),
}
MATH = re.compile(
    r"math|mrow|m(i|n|o|s|text|space|frac|sqrt|root|sub|sup|subsup|under|over)\Z|m[a-z]+"
)
ATTRIBUTES = {
    "a": {"href", "rel", "target", "title", "class"},
    "ol": {"start"},
    "li": {"class"},
    "p": {"class"},
    "input": {"type", "disabled", "checked", "aria-label"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "button": {"type", "class", "data-copy"},
    "pre": {"tabindex"},
    "code": {"class"},
    "span": {"class", "data-code"},
    "th": {"class"},
    "td": {"class"},
}
CLASSES = re.compile(
    r"(?:md|code|scroll|math|math-source|literal|spelled|task|image-link|btn quiet"
    r"|align-(?:left|center|right)|language-[a-z0-9+#_.-]{1,24}|[a-z][a-z0-9]{0,2})\Z"
)
NEVER = {
    "script",
    "style",
    "iframe",
    "object",
    "embed",
    "svg",
    "img",
    "form",
    "base",
    "link",
    "meta",
}

HOSTILE = [
    "<script>alert(1)</script> <img src=x onerror=alert(1)> <svg onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a> <base href='//evil'> <form action=//evil><input name=a>",
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](java\tscript:alert(1)) [d](<java\nscript:1>)",
    "[a](&#106;avascript:alert(1)) [b](javascript&colon;alert(1)) [c](&#x6A&#x61vascript:alert(1))",
    "[a](data:text/html,<script>1</script>) [b](vbscript:x) [c](file:///etc/passwd) [d](//evil.example)",
    "[a](\x01javascript:alert(1)) [b]( javascript:alert(1)) [c](%6Aavascript:1) [d](blob:http://a/b)",
    "[a][x] ![b][x] [x]\n\n[x]: javascript:alert(1) 'title'\n",
    "<javascript:alert(1)> <data:text/html,x> javascript://%0aalert(1) <jAvAsCrIpT:alert(1)>",
    "![x](http://evil.example/track.png) ![x](data:image/svg+xml,<svg>) ![\"onerror=](http://a.b/c)",
    "![a](javascript:alert(1)) [![a](http://b.c/d)](javascript:alert(1))",
    "[a](http://x.y/\"onmouseover=\"alert(1)) [a](http://x.y 'a\" onclick=\"b') [a](http://x.y/'>&lt;)",
    "$\\text{<script>alert(1)</script>}$ $$\\href{javascript:alert(1)}{x}$$ $\\text{<img src=x onerror=1>}$",
    "$\\style{color:red}{x}$ $\\class{a}{x}$ $\\cssId{body}{x}$ $\\unicode{x3c}script$ \\(\\require{html}x\\)",
    "$$\n\\text{</math><script>alert(1)</script>}\n$$\n",
    "```\"><script>alert(1)</script>\ncode\n```\n\n```x onclick=alert(1)\ncode\n```\n",
    "```html\n<script>alert(1)</script>\n```\n\n```python\nx = '</code></pre><script>'\n```\n",
    "| a | b |\n|---|---|\n| <script>1</script> | [x](javascript:1) |\n",
    "<p id=location name=body class=md style='position:fixed'>x</p> {#id .class style=x}",
    "# heading {#body}\n\n<h1 id='chat'>x</h1>\n",
    "a\0b \u202ertl\u202c \u2066x\u2069 \ufeff \x1b[31m \x08",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62; &amp;lt;script>",
    "<!--><script>alert(1)</script>--> <![CDATA[<script>]]> <?php x ?> </div></div><style>*{}</style>",
    ">" * 300 + " deep\n" + "- " * 300 + "deep\n",
    "[" * 500 + "a" + "](javascript:1)" * 500,
    "*" * 500 + "a" + "_*" * 500,
    "1234567890123. big\n\n999999999. start\n",
    "<br onclick=alert(1)> <br/onload=1> <br >",
    "www.evil.example/\"><script> http://a\"b.c/<script> a@b.c\"><x>",
    "$" + "{" * 300 + "$ $\\frac" + "\\frac" * 100 + "$",
]  # fmt: skip


class Inspector(HTMLParser):
    """Fails at the first tag, attribute, class or address that is not on the list."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in NEVER
        math = tag not in TAGS
        assert not math or MATH.fullmatch(tag), tag
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("style", "id", "name", "src", "srcdoc", "action")
            if math:
                assert name not in ("href", "class", "xlink:href")
            else:
                assert name in ATTRIBUTES[tag], (tag, name)
            if name == "class":
                assert CLASSES.match(value or ""), value
            if name == "href":
                assert re.match(
                    r"(?:https?://[^/]|mailto:|/chats/-/files/[^/])", value or "", re.IGNORECASE
                ), value

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def inspect(html: str) -> None:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()


@pytest.mark.parametrize("text", HOSTILE + TEXTS)
def test_a_hostile_text_leaves_nothing_that_runs_or_loads(text: str) -> None:
    inspect(render(text))
    inspect(stream(text, Limits(cut=40, piece=20, line=30), Random(1)).html())


def test_the_examples_of_the_specification_hold_nothing_but_what_is_on_the_list() -> None:
    for text in examples():
        inspect(render(text))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*ATOMS, *HOSTILE]), min_size=1, max_size=12).map("".join))
def test_mixtures_of_hostile_texts_hold_nothing_but_what_is_on_the_list(text: str) -> None:
    inspect(render(text))


def test_links_that_are_not_for_the_web_or_mail_or_a_file_are_shown_as_text() -> None:
    html = render(
        "[a](javascript:x) [b](#top) [c](/chats) [d](../file.txt) [e](ftp://x.y) [f](//x.y)"
    )
    assert html == "<p>a b c d e f</p>"
