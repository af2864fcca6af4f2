"""Sizes that bound the work on one block."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """All sizes in characters of source. Stream and whole rendering have to use the same.

    `cut`: an open paragraph or code block longer than this is cut, a list at an eighth.
    `piece`: the size from which a piece of a cut block is complete.
    `line`: a longer line is no table header, so a long line can be cut.
    `unit`: what cannot be cut (a quote, one list item, ...) is shown as plain text beyond this;
    a line counts as 24 characters more, each `>` it begins with as 12.
    `depth`: as `unit`, for nested tokens: a quote counts one, a list two.
    `columns`: a table with more of them is no table.
    `missing`: a table ends where it would need more empty cells than this, as in markdown-it.
    `highlight`: longer code is not highlighted.
    `step`, `lines`: new text that one settle looks at. `lines` ends a piece as well.
    `spaces`: a longer run of white space is shortened to this.
    """

    cut: int = 2048
    piece: int = 1024
    line: int = 1000
    unit: int = 16_000
    depth: int = 24
    columns: int = 40
    missing: int = 65_536
    highlight: int = 8000
    step: int = 1024
    lines: int = 50
    spaces: int = 1000


DEFAULT = Limits()
