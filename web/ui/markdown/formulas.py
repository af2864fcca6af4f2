"""Formulas from LaTeX to MathML, which browsers show without a script."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from .sanitiser import clean_inline

LONGEST = 600


@lru_cache(maxsize=1024)
def formula(source: str, display: bool) -> str:
    """The formula as MathML; its source as code if it is too long or not understood."""
    plain = f'<code class="math-source">{escape(source, quote=False)}</code>'
    if len(source) > LONGEST or source.count("{") > 80:
        return plain
    from latex2mathml.converter import convert

    try:
        html = convert(source.strip(), display="block" if display else "inline")
    except Exception:
        # The converter has no error of its own for what it does not understand.
        return plain
    return clean_inline(html) or plain
