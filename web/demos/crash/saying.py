"""Lines for a terminal, each written at once."""

from __future__ import annotations

LABEL_WIDTH = 12


def tell(line: str) -> None:
    print(line, flush=True)


def say(label: str, words: str) -> None:
    """A line with what it is about at its beginning."""
    tell(f"  {label:<{LABEL_WIDTH}}{' '.join(words.split())}")
