"""What goes wrong while a text is split ends no answer: the rest is shown as it stands."""

from __future__ import annotations

import logging
from typing import Literal

import pytest

from tests.ui.markdown.streamed import Page
from web.chats.markdown import Block, Limits, MarkdownStream
from web.chats.markdown.modes import Mode, Step
from web.chats.markdown.parser import Definitions
from web.chats.markdown.tail import Tail

Where = Literal["advance", "grow", "patient"]


class Breaking:
    """As the mode inside, until the text has an "!" in it."""

    def __init__(self, inside: Mode, where: Where) -> None:
        self._inside = inside
        self._where = where

    def advance(self, text: str, known: Definitions, final: bool) -> Step:
        self._check(text, "advance")
        step = self._inside.advance(text, known, final)
        if step.then is not None:
            step.then = Breaking(step.then, self._where)
        return step

    def grow(self, text: str, fresh: int) -> Block | None:
        self._check(text, "grow")
        return self._inside.grow(text, fresh)

    def patient(self, text: str) -> bool:
        self._check(text, "patient")
        return self._inside.patient(text)

    def _check(self, text: str, where: Where) -> None:
        if where == self._where and "!" in text:
            raise IndexError("a mistake")


SMALL = Limits(cut=40, piece=20, line=30)
TEXTS = [
    "Hello world! And *more*.\n\nNext\n",
    "One\n\n- a\n- b!\n- c\n\nNext\n",
    "One\n\n- a long list\n- with some items\n- of which this one breaks! here\n- c\n\nNext\n",
    "| a |\n|---|\n| b |\n| c! |\n\nNext\n",
    "words " * 20 + "and then it breaks! here\n\nNext\n",
    "```\n" + "code\n" * 20 + "breaks!\n```\nNext\n",
]


@pytest.mark.parametrize("where", ["advance", "grow", "patient"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_mistake_in_a_mode_leaves_the_rest_of_the_text_on_the_page(
    text: str, where: Where, caplog: pytest.LogCaptureFixture
) -> None:
    stream = MarkdownStream(SMALL, mode=Breaking(Tail(0, SMALL), where))
    page = Page(SMALL)
    for letter in text:
        stream.feed(letter)
        page.apply(stream.settle())
    stream.finish()
    while stream.pending:
        page.apply(stream.settle())
    assert stream.text == text
    assert "Next" in page.html()
    shown = "".join(block.source for block in page.blocks.values())
    assert [
        word for word in text.split() if word.strip("!*.").isalpha() and word not in shown
    ] == []
    mistakes = [record for record in caplog.records if record.levelno == logging.ERROR]
    # A mode that does not grow quickly is not asked to.
    assert len(mistakes) == 1 or (where == "grow" and not mistakes)


def test_a_mistake_at_the_very_end_still_ends_the_stream() -> None:
    stream = MarkdownStream(SMALL, mode=Breaking(Tail(0, SMALL), "advance"))
    page = Page(SMALL)
    stream.feed("One\n\ntwo!")
    stream.finish()
    while stream.pending:
        page.apply(stream.settle())
    assert [block.source.strip() for block in page.blocks.values() if not block.shell] == [
        "One",
        "two!",
    ]
