"""A page that a chat made, made over so that nothing in it leads anywhere or fetches anything.

It is read as browsers read pages, and written anew with what is named here and nothing else. What
is kept is what a page looks like: elements, styles, and pictures that it holds itself.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3
from markupsafe import escape

_HTML = """
a abbr address article aside audio b bdi bdo big blockquote br button caption center cite code col
colgroup data dd del details dfn dialog dir div dl dt em fieldset figcaption figure font footer h1
h2 h3 h4 h5 h6 header hgroup hr i img input ins kbd label legend li main mark menu meter nav ol
optgroup option output p picture pre progress q rp rt ruby s samp search section select small
source span strike strong style sub summary sup table tbody td textarea tfoot th thead time tr tt
u ul var video wbr
"""
_SVG = """
animate animateMotion animateTransform circle clipPath defs desc ellipse feBlend feColorMatrix
feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight
feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode
feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence filter
foreignObject g image line linearGradient marker mask mpath path pattern polygon polyline
radialGradient rect set stop svg switch symbol text textPath tspan use
"""
_MATH = """
math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms
mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover
"""
_ATTRIBUTES = """
abbr align alt autoplay bgcolor border cellpadding cellspacing checked class clear cols colspan
color compact controls datetime dir disabled face frame headers height hidden high hspace id label
lang loop low max maxlength min multiple muted name noshade nowrap open optimum placeholder readonly
reversed role rows rowspan rules scope selected size span start style tabindex title type valign
value vspace width wrap href src poster

accumulate additive alignment-baseline amplitude attributeName attributeType azimuth baseFrequency
baseline-shift begin bias by calcMode clip-path clip-rule clipPathUnits color-interpolation
color-interpolation-filters cx cy d diffuseConstant display divisor dominant-baseline dur dx dy
edgeMode elevation end exponent fill fill-opacity fill-rule filter filterUnits flood-color
flood-opacity font-family font-size font-style font-variant font-weight from fr fx fy
gradientTransform gradientUnits in in2 intercept k1 k2 k3 k4 kernelMatrix keyPoints keySplines
keyTimes lengthAdjust letter-spacing lighting-color limitingConeAngle marker-end marker-mid
marker-start markerHeight markerUnits markerWidth mask maskContentUnits maskUnits mode numOctaves
offset opacity operator order orient overflow paint-order path pathLength patternContentUnits
patternTransform patternUnits points pointsAtX pointsAtY pointsAtZ preserveAspectRatio
primitiveUnits r radius refX refY repeatCount repeatDur result rotate rx ry scale seed
shape-rendering side slope specularConstant specularExponent spreadMethod startOffset stdDeviation
stitchTiles stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap
stroke-linejoin stroke-miterlimit stroke-opacity stroke-width surfaceScale tableValues targetX
targetY text-anchor text-decoration text-rendering textLength to transform transform-origin values
vector-effect viewBox visibility word-spacing writing-mode x x1 x2 xChannelSelector xlink:href
xmlns xml:space y y1 y2 yChannelSelector z

accent accentunder columnalign columnlines columnspacing columnspan depth displaystyle fence
linethickness lspace mathvariant maxsize minsize movablelimits notation rowalign rowlines rowspacing
rspace scriptlevel separator separators stretchy symmetric voffset
"""
_SKIPPED = {
    "script", "noscript", "title", "iframe", "noembed", "noframes", "template",
}  # fmt: skip
"""What goes with all that it holds: it is never shown, or not as what it is."""

_OUTER = ("class", "id", "style", "lang", "dir", "bgcolor", "text")
_OUTER_CHARS = 256 * 1024
"""The tags around the content stand in so much from the start, or are passed over."""

_IMAGES = ("image", "feImage")
_STILL = re.compile(r"(?!.*href)[a-zA-Z-]+\Z", re.IGNORECASE)
"""An attribute that may be animated: a link is none, though it has no address to begin with."""
_TIMES = 3


def inert_page(html: str) -> str | None:
    """The page, with links that lead nowhere but within it; None for one that changes each time.

    A page that is read otherwise once it was written is made over again: what comes out is read
    as it is written, by this and by a browser.
    """
    content = html
    for _ in range(_TIMES):
        cleaned = _cleaner.clean(content)
        if cleaned == content:
            break
        content = cleaned
    else:
        if _cleaner.clean(content) != content:
            return None
    around = _Around()
    around.feed(html[:_OUTER_CHARS])
    # Without a doctype a page is laid out by older rules, and was written for them.
    doctype = "<!doctype html>\n" if around.doctype else ""
    return (
        f'{doctype}<html{around.attributes["html"]}><head><meta charset="utf-8">'
        f"<title>Page</title></head><body{around.attributes['body']}>\n{content}</body></html>"
    )


class _Around(HTMLParser):
    """Finds what looks belong to the page as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.doctype = False
        self.attributes = {"html": "", "body": ""}

    def handle_decl(self, decl: str) -> None:
        self.doctype = self.doctype or decl.lower().startswith("doctype html")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.attributes and not self.attributes[tag]:
            self.attributes[tag] = "".join(
                f' {name}="{escape(value)}"' for name, value in attrs if name in _OUTER and value
            )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """The value of an attribute, or None for one that leads or loads from somewhere."""
    match attribute:
        case "href" | "xlink:href":
            within = value.startswith("#") or (tag in _IMAGES and value.startswith("data:image/"))
            return value if within else None
        case "src" | "poster":
            return value if value.startswith("data:") else None
        case "attributeName":
            return value if _STILL.match(value) else None
    return value


_cleaner = nh3.Cleaner(
    tags={*_HTML.split(), *_SVG.split(), *_MATH.split()},
    clean_content_tags=_SKIPPED,
    attributes={"*": set(_ATTRIBUTES.split())},
    generic_attribute_prefixes={"aria-", "data-"},
    attribute_filter=_kept,
    url_schemes={"data"},
    link_rel=None,
)
