"""Words of a server, made fit to be shown: nothing unseen in them, and not too many."""

from __future__ import annotations

from web.harness.tools.glyphs import is_unseen
from web.harness.tools.words import clean, shorten

_LINE_ENDS = str.maketrans({"\r": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n"})


def tidy(text: object, limit: int, *, one_line: bool = False) -> str:
    """At most `limit` characters that can all be seen; '' for what is no text.

    Control, zero-width, direction and tag characters, variation selectors and blank letters go:
    they hide words from a person that a model reads. Line ends and tabs stay unless `one_line`.
    """
    if not isinstance(text, str):
        return ""
    # Cut first: what is left out below is rarely more than a few characters.
    text = clean(text[: 4 * limit]).replace("\r\n", "\n").translate(_LINE_ENDS)
    if not (text.isascii() and text.isprintable()):
        text = "".join(char for char in text if char in "\n\t" or not is_unseen(char))
    text = " ".join(text.split()) if one_line else text.strip()
    return shorten(text, limit)
