"""A text costs in proportion to its length, and no step of it takes long."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest

from tests.bench.markdown_cost import KINDS, measure
from web.ui.markdown import warm

SIZE = 24_000


def sampled(names: Iterable[str], quick: Container[str]) -> list[Any]:
    """All of the names; those that are not `quick` only in the long form."""
    return [
        pytest.param(name, marks=() if name in quick else (pytest.mark.full,)) for name in names
    ]


@pytest.mark.parametrize("kind", sampled(KINDS, ("mix",)))
def test_twice_the_text_costs_about_twice(kind: str) -> None:
    warm()
    make = KINDS[kind]
    half, full = [measure(make(SIZE))], [measure(make(2 * SIZE))]
    assert full[0].sent < 2.3 * half[0].sent
    # What else the machine does only adds: the least of a few tries is what it costs.
    for _ in range(4):
        least, most = (min(cost.cpu for cost in costs) for costs in (half, full))
        if most < 2.5 * least + 0.02:
            break
        half.append(measure(make(SIZE)))
        full.append(measure(make(2 * SIZE)))
    assert most < 2.5 * least + 0.02


def definitions(size: int) -> str:
    """Paragraphs that each mention two labels, and all of the definitions at the end."""
    count = size // 80
    return "".join(f"See [a{n}] and [b{n}] here.\n\n" for n in range(count)) + "".join(
        f"[a{n}]: http://example.com/{n}\n[b{n}]: http://example.com/{n}\n" for n in range(count)
    )


@pytest.mark.full
def test_definitions_at_the_end_of_a_long_text_cost_what_they_are() -> None:
    warm()
    half = [measure(definitions(SIZE)) for _ in range(3)]
    full = [measure(definitions(2 * SIZE)) for _ in range(3)]
    assert min(cost.cpu for cost in full) < 2.5 * min(cost.cpu for cost in half) + 0.05
    # The same step in each run, so that what else the machine did does not count.
    assert max(min(step) for step in zip(*(cost.steps for cost in full), strict=True)) < 20


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


QUICK = ("brackets", "deep quotes", "rows of a wide table", "definitions", "lines")


@pytest.mark.parametrize("name", sampled(HOSTILE, QUICK))
def test_no_step_over_a_hostile_text_takes_long(name: str) -> None:
    """A step is what the event loop does in one go: to split new text, or to render a block."""
    warm()
    size = 10_000
    text = HOSTILE[name] * (size // len(HOSTILE[name]))
    if name == "rows of a wide table":
        text = "|" + "a|" * 40 + "\n|" + "-|" * 40 + "\n" + text
    steps = measure(text).steps
    if max(steps) >= 20:
        # The same step in another run, so that what else the machine did does not count.
        steps = [min(step) for step in zip(steps, measure(text).steps, strict=True)]
    assert max(steps) < 20
    assert sum(steps) < 3000
