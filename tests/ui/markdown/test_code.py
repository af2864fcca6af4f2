"""Highlighted code: the same text, in bounded time, by no lexer but those on the list."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest

from web.ui.markdown.code import _LEXERS, HIGHLIGHT_SECONDS, _lexer, highlighted

CODE = """\
def f(x):  # é <b>&amp;
    return {'a': "b\\n", `c`: $d} /* e */

>>> f(1)
$ ls -l | grep x

\t<tag attribute="1">text</tag> -- end
"""


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize("language", sorted(_LEXERS))
def test_the_text_stays_the_same(language: str) -> None:
    assert text_of(highlighted(CODE, language)) == CODE


def test_code_that_takes_a_lexer_very_long_ends_as_plain_text() -> None:
    code = "a\n" * 3900
    before = time.thread_time()
    html = highlighted(code, "csharp")
    assert time.thread_time() - before < 8 * HIGHLIGHT_SECONDS
    assert text_of(html) == code
    assert html.startswith("<span")
    assert html.endswith("a\na\na\n")


def test_code_inside_of_markdown_loads_no_other_lexer() -> None:
    html = highlighted("# A\n\n```python\ndef f(): pass\n```\n", "markdown")
    assert '<span class="k">' not in html
    assert _lexer("http") is None
