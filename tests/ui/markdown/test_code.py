"""Highlighted code: the same text, in bounded time, by no lexer but those on the list."""

from __future__ import annotations

import re
import time
from html import unescape
from typing import ClassVar

import pytest
from pygments.lexer import RegexLexer
from pygments.token import Name, Text

from web.chats.markdown import Block
from web.ui.markdown.blocks import prepare_block, render_block
from web.ui.markdown.code import (
    _LEXERS,
    HIGHLIGHT_SECONDS,
    _lexer,
    code_block,
    highlighted,
    is_highlighted,
    plain_code,
)
from web.ui.markdown.lexers import MAX_SEEN, bounded, loops_of

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


LONG = 8000
"""As long as code in an answer may be to be highlighted."""
HOSTILE = [
    *("=", " ", "\n", "\t", "a ", "a\n", "{{", '"\\', "\\", "<a ", "a(", "${", "[", "a, ", "0"),
]
"""Each, over and over, made some lexer look through all of it from each place, or worse."""
MORE_HOSTILE = [
    *(
        "a",
        "A",
        '"',
        "'",
        "`",
        "(",
        "{",
        "<",
        ">",
        ")",
        "/",
        "*",
        "#",
        "$",
        "-",
        "+",
        ":",
        ".",
        "@",
    ),
    *(
        "%",
        "|",
        "!",
        "~",
        "?",
        "a=",
        "a.",
        "::",
        "\\\n",
        "/*",
        "a a\n",
        " \n",
        "\r\n",
        "[a",
        '"a",',
    ),
]


def longest_step(language: str, code: str) -> float:
    """Seconds of CPU that highlighting goes on for without a look at the time, about."""
    lexer = _lexer(language)
    begun = last = time.thread_time()
    longest = 0.0
    for _ in lexer.get_tokens_unprocessed(code):
        now = time.thread_time()
        longest, last = max(longest, now - last), now
        if now - begun > 0.005:
            break
    return max(longest, time.thread_time() - last)


def is_quick(language: str, code: str) -> bool:
    # Other work of this process, such as freeing memory, may fall into one step, but not into two.
    return any(longest_step(language, code) < 0.1 for _ in range(3))


@pytest.mark.parametrize(
    "language",
    # The long form below has these shapes too.
    [
        pytest.param(name, marks=() if number % 4 == 0 else pytest.mark.full)
        for number, name in enumerate(sorted(_LEXERS))
    ],
)
def test_no_step_of_a_lexer_takes_long_whatever_it_reads(language: str) -> None:
    slow = [
        (before, unit)
        for before in ("", "a ", '"')
        for unit in HOSTILE
        if not is_quick(language, (before + unit * LONG)[:LONG])
    ]
    assert slow == []


@pytest.mark.full
@pytest.mark.parametrize("language", sorted(_LEXERS))
def test_no_step_of_a_lexer_takes_long_in_any_of_many_shapes(language: str) -> None:
    slow = [
        (before, unit)
        for before in ("", "a ", '"', "(", "<a ", "/*", "#", "@", "def ", "a = ", 'r"', "- ")
        for unit in (*HOSTILE, *MORE_HOSTILE)
        if not is_quick(language, (before + unit * LONG)[:LONG])
    ]
    assert slow == []


def test_an_expression_of_several_loops_sees_only_so_much() -> None:
    class Greedy(RegexLexer):
        name = "Greedy"
        tokens: ClassVar = {"root": [(r"a*b?a*c", Name), (r"(a+)(a+)(a+)$", Text), (r"a+", Text)]}

    sizes = [len(text) for _, _, text in bounded(Greedy)().get_tokens_unprocessed("a" * 1000)]
    # The second takes what looks like the end to it.
    assert sizes == [MAX_SEEN[3]] * 4
    assert [loops_of(each) for each in (r"\*[+*]\+", "a*+b+?", "a{2,}(b{,3})*", "a{3}?")] == [
        0,
        2,
        3,
        0,
    ]


def test_usual_code_is_highlighted_as_by_the_lexer_itself() -> None:
    from pygments.lexers import get_lexer_by_name

    code = "/* " + "long comment \n" * 100 + '*/\nint main(void) {\n  return f("x");\n}\n'
    own = get_lexer_by_name("c", stripnl=False, ensurenl=False)
    assert list(_lexer("c").get_tokens_unprocessed(code)) == list(own.get_tokens_unprocessed(code))


def test_what_would_turn_code_around_is_named_and_stands_alone() -> None:
    code = "a = 1 # \u202e ;)'x mr'\u2066\u200b\n"
    for html in (highlighted(code, "python"), plain_code(code), code_block(code, "", True)):
        for char in "\u202e\u2066\u200b":
            assert f'data-code="⟨U+{ord(char):04X}⟩">{char}</span>' in html
        assert "\u202e" not in re.sub(r"<span class=\"spelled\"[^>]*>.</span>", "", html)
    # It is copied as it is.
    assert text_of(plain_code(code)) == code
    assert is_highlighted("python")
    assert not is_highlighted("scala")


@pytest.mark.anyio
async def test_code_within_a_list_is_highlighted_in_a_thread_too() -> None:
    inner = "".join(f"  x{number} = 'nested'\n" for number in range(200))
    block = Block("0", None, "item", f"- a\n\n  ```python\n{inner}  ```\n", head="- a\n")
    await prepare_block(block)
    known = highlighted.cache_info()
    assert '<span class="' in render_block(block).before
    assert highlighted.cache_info().misses == known.misses
