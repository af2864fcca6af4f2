"""Markdown to safe HTML: `render_block` for a block of a stream, `render` for a whole text."""

from __future__ import annotations

from .blocks import Rendered, render_block
from .whole import render

__all__ = ["Rendered", "render", "render_block", "warm"]


def warm() -> None:
    """Load what rendering needs at its first formula, link and code block: some 0.1 s once."""
    render("www.example.com $x$ **a** [b](http://example.com)\n\n```python\nx = 1\n```\n")
