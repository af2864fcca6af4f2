"""White space. Markdown knows two kinds of it, and Python's `strip()` is neither.

What makes a line blank, indents it or parts its marks is a space or a tab. What is taken off the
ends of a paragraph, heading or cell is more: the parser trims U+3000 or U+00A0 as well, so that a
paragraph of nothing else is there and is empty.
"""

from __future__ import annotations

from markdown_it.common.utils import MD_TRIM_CHARS

BLANK = " \t\n"
"""What blank lines are made of."""


def trimmed(content: str) -> str:
    """Inline content without what the parser takes off its ends."""
    return content.strip(MD_TRIM_CHARS)


def trimmed_end(content: str) -> str:
    """As `trimmed`, for content whose beginning is trimmed or goes on from a piece before it."""
    return content.rstrip(MD_TRIM_CHARS)
