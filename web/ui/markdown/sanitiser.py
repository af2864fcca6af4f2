"""The last word on what reaches the page from untrusted text.

Inline HTML, formulas and highlighted code go through nh3 with an explicit list. The elements around
them (paragraphs, lists, tables, the frame of a code block) are written by us from fixed strings.
"""

from __future__ import annotations

import nh3
from pygments.token import STANDARD_TYPES

_MATH = {
    "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub",
    "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none",
    "mtable", "mtr", "mtd", "mlabeledtr", "mpadded", "mphantom", "mstyle", "menclose", "merror",
}  # fmt: skip
_MATH_ATTRIBUTES = {
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "columnspan", "depth",
    "display", "displaystyle", "fence", "form", "height", "largeop", "linethickness", "lspace",
    "mathsize", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rowalign",
    "rowlines", "rowspacing", "rowspan", "rspace", "scriptlevel", "separator", "separators",
    "stretchy", "symmetric", "voffset", "width",
}  # fmt: skip
_INLINE = {"a", "br", "code", "em", "s", "small", "strong"}
_ATTRIBUTES: dict[str, set[str]] = dict.fromkeys(_MATH, _MATH_ATTRIBUTES)
_ATTRIBUTES["a"] = {"href", "rel", "target", "title"}

_inline = nh3.Cleaner(
    tags=_INLINE | _MATH,
    clean_content_tags={"script", "style"},
    attributes=_ATTRIBUTES,
    allowed_classes={"a": {"image-link"}, "code": {"math-source"}},
    url_schemes={"http", "https", "mailto"},
    link_rel=None,
)
_code = nh3.Cleaner(
    tags={"span"},
    attributes={},
    allowed_classes={"span": {name for name in STANDARD_TYPES.values() if name}},
)


def clean_inline(html: str) -> str:
    """Inline elements and formulas."""
    # A U+FEFF at the very beginning would be taken for a byte order mark and left out.
    mark = "\ufeff" if html.startswith("\ufeff") else ""
    return mark + _inline.clean(html)


def clean_code(html: str) -> str:
    """Highlighted code: nothing but spans with Pygments' classes."""
    return _code.clean(html)
