"""Which addresses of untrusted text become links."""

from __future__ import annotations

import re
from html import escape

_WEB = re.compile(
    r"https?://[^\s/?#\\<>\"'`\x00-\x20\x7f][^\s\\<>\"'`\x00-\x20\x7f]*\Z", re.IGNORECASE
)
_MAIL = re.compile(r"mailto:[^\s\\<>\"'`\x00-\x20\x7f]+\Z", re.IGNORECASE)
_HOST = re.compile(r"https?://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE)

OUTSIDE = 'rel="noopener noreferrer nofollow" target="_blank"'


def address(href: str) -> str | None:
    """The address to link to, or None if the link is shown as plain text.

    Web and mail addresses only. Fragments would point into our own page, and relative addresses
    mean nothing in it.
    """
    if _WEB.match(href) or _MAIL.match(href):
        return href
    return None


def web_address(href: str) -> str | None:
    """As `address`, for what is loaded: no mail."""
    return href if _WEB.match(href) else None


def host(href: str) -> str:
    """The host of a web address, as a person should see it."""
    found = _HOST.match(href)
    return found.group(1) if found else ""


def link_start(href: str, title: str = "") -> str:
    """The opening tag of a link to an allowed address."""
    named = f' title="{escape(title)}"' if title else ""
    return f'<a href="{escape(href)}"{named} {OUTSIDE}>'


def image_link(href: str, alt: str) -> str:
    """An image is not loaded but offered as a link that names its host."""
    text = f"{escape(alt or 'image', quote=False)} <small>{escape(host(href), quote=False)}</small>"
    return f'<a class="image-link" href="{escape(href)}" {OUTSIDE}>{text}</a>'
