"""What a reader sees while a text grows: at once, and never first as text and then as code."""

from __future__ import annotations

import re
from itertools import count

from hypothesis import HealthCheck, example, given, settings, strategies as st

from tests.ui.markdown.streamed import Page
from web.chats.markdown import Block, Limits, MarkdownStream
from web.ui.markdown import render

MARKS = [
    *(
        "W ",
        "W ",
        "W\n",
        "W\n\n",
        "\n",
        "\n\n",
        "- W\n",
        "- ",
        "1. W\n",
        "12. ",
        "> W\n",
        "> ",
        "  ",
    ),
    *(
        "    ",
        "\t",
        "```\n",
        "```W\n",
        "```",
        "``",
        "`W` ",
        "~~~\n",
        "~~",
        "# W\n",
        "#",
        "---\n",
        "===",
    ),
    *(
        "\n```\n",
        "\n~~~\n",
        "W | W\n",
        "| W | W |\n",
        "|---|---|\n",
        "|--",
        "| W\n",
        "**W** ",
        "- ```\n",
    ),
    *("  ```\n", "> ```\n", "1) W\n", "+ W\n\n", "      W\n", "    W\n", "$$\n", "* W\n", "-", "W"),
]
WORD = re.compile(r"w\d+q")
CODE = re.compile(r"<pre.*?</pre>", re.DOTALL)
texts = st.lists(st.sampled_from(MARKS), min_size=1, max_size=40).map("".join)


def numbered(text: str) -> str:
    """Every W made a word of its own."""
    numbers = count()
    return re.sub("W", lambda _: f"w{next(numbers)}q", text)


def seen(html: str) -> dict[str, bool]:
    """Each word that is shown, and whether as code."""
    found = dict.fromkeys(WORD.findall(CODE.sub("", html)), False)
    for block in CODE.findall(html):
        found.update(dict.fromkeys(WORD.findall(block), True))
    return found


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts, st.booleans())
@example("W\n\n```\nW\n``` \nW\n", False)
@example("W\n~~~W\nW\n\n~~~~\nW", True)
@example("- W\n  ```\n  W\n  ```\nW", True)
def test_what_was_shown_as_code_stays_code_and_text_stays_text(text: str, small: bool) -> None:
    text = numbered(text)
    limits = Limits(cut=30, piece=15, line=20) if small else Limits()
    stream, page = MarkdownStream(limits), Page(limits)
    known: dict[str, bool] = {}
    for char in text:
        stream.feed(char)
        page.apply(stream.settle())
        now = seen(page.html())
        for word, code in now.items():
            assert known.setdefault(word, code) == code, (word, text)
    final = seen(render(text, limits))
    assert {word: code for word, code in known.items() if final.get(word, code) != code} == {}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([mark for mark in MARKS if "`W\n" not in mark]), max_size=30))
def test_what_is_shown_lags_by_no_more_than_the_lines_held_back(marks: list[str]) -> None:
    text = numbered("".join(marks))[:500]
    whole = seen(render(text))
    stream, page = MarkdownStream(), Page(Limits())
    for end, char in enumerate(text, 1):
        stream.feed(char)
        page.apply(stream.settle())
        lines = text[:end].split("\n")
        held = 2 if lines[-2:-1] and lines[-2].lstrip("> \t").startswith("|") else 1
        expected = set(WORD.findall("\n".join(lines[:-held]))) & whole.keys()
        assert expected <= seen(page.html()).keys(), text[:end]


def test_a_word_is_shown_as_soon_as_it_is_there() -> None:
    stream, page = MarkdownStream(), Page(Limits())
    text = "Some plain **bold** words, and `code` in them. "
    for end, char in enumerate(text, 1):
        stream.feed(char)
        page.apply(stream.settle())
        assert page.html().count("<p>") == 1
        assert page.blocks["0"].source == text[:end].rstrip()


def test_the_start_of_a_paragraph_is_shown_at_once_however_long_the_one_before_is() -> None:
    stream = MarkdownStream()
    stream.feed("A paragraph of some length, all on one line. " * 20 + "\n")
    stream.settle()
    stream.feed("\n")
    stream.settle()
    stream.feed("Next")
    assert [block.source for block in stream.settle() if isinstance(block, Block)] == ["Next"]
