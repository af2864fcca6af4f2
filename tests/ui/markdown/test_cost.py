"""A text costs in proportion to its length, and no step of it takes long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench.markdown_cost import KINDS, measure
from web.ui.markdown import warm

SIZE = 24_000


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_twice_the_text_costs_about_twice(make: Callable[[int], str]) -> None:
    warm()
    half = [measure(make(SIZE)) for _ in range(2)]
    full = [measure(make(2 * SIZE)) for _ in range(2)]
    assert full[0].sent < 2.3 * half[0].sent
    assert min(cost.cpu for cost in full) < 2.5 * min(cost.cpu for cost in half) + 0.02


HOSTILE = {
    "brackets": "[",
    "images": "![",
    "links": "[a](",
    "emphasis": "*a **a ",
    "marks": "a*_",
    "quotes": ">",
    "deep quotes": "> " * 15 + "a\n",
    "bullets": "- ",
    "short lines": "a\n",
    "short items": "- a\n",
    "empty items": "-\n",
    "pipes": "|\n",
    "rows of a wide table": "|\n",
    "definitions": "[x]: y\n",
    "backticks": "`a ``b ",
    "dollars": "$a ",
    "addresses": "http://",
    "spaces": " ",
    "lines": "\n",
    "one word": "a",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_step_over_a_hostile_text_takes_long(name: str) -> None:
    """A step is what the event loop does in one go: to split new text, or to render a block."""
    warm()
    size = 10_000
    text = HOSTILE[name] * (size // len(HOSTILE[name]))
    if name == "rows of a wide table":
        text = "|" + "a|" * 40 + "\n|" + "-|" * 40 + "\n" + text
    runs = [measure(text).steps for _ in range(3)]
    # The same step in each run, so that what else the machine did does not count.
    steps = [min(step) for step in zip(*runs, strict=True)]
    assert max(steps) < 20
    assert sum(steps) < 3000
