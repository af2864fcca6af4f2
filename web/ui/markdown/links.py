"""Which addresses of untrusted text become links."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote, unquote

from web.harness.builtin.paths import parse_path
from web.harness.values.errors import ToolError

_WEB = re.compile(
    r"https?://[^\s/?#\\<>\"'`\x00-\x20\x7f][^\s\\<>\"'`\x00-\x20\x7f]*\Z", re.IGNORECASE
)
_MAIL = re.compile(r"mailto:[^\s\\<>\"'`\x00-\x20\x7f]+\Z", re.IGNORECASE)
_HOST = re.compile(r"https?://(?:[^/?#]*@)?([^/?#]*)", re.IGNORECASE)

FILES = "/chats/-/files/"
"""Where the files of a chat are, in HTML that may be shown in any chat; see `with_files`."""

_FILE_LINK = re.compile(rf'<a href="{FILES}[^"]*"[^>]*>(.*?)</a>', re.DOTALL)

_PICTURE_LINK = re.compile(
    rf'<a href="{FILES}(?P<path>[^"]*\.(?:png|jpe?g|gif|webp))" class="image-link">'
    r"(?P<text>.*?)</a>",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")

OUTSIDE = 'rel="noopener noreferrer nofollow" target="_blank"'


def address(href: str) -> str | None:
    """The address to link to, or None if the link is shown as plain text.

    Web and mail addresses, and relative ones, which name a file of the chat. Fragments would point
    into our own page.
    """
    if _WEB.match(href) or _MAIL.match(href):
        return href
    return file_address(href)


def file_address(href: str) -> str | None:
    """The address of a file of the chat that a relative address names, below `FILES`.

    None for what cannot be one, or looks more like the name of a host.
    """
    path = unquote(re.split("[?#]", href, maxsplit=1)[0]).removeprefix("./")
    if path.lower().startswith("www.") or not ("/" in path or "." in path):
        return None
    try:
        return FILES + quote("/".join(parse_path(path)), safe="/")
    except ToolError:
        return None


def with_files(html: str, files: str, pictures: str = "") -> str:
    """The HTML with its links to files leading below the address `files`, or, for '', with no such
    links: then there are no files that they could mean.

    With `pictures`, an address where their bytes are, those that stand for pictures show them.
    """
    # Nothing that somebody wrote can hold the start of a tag.
    if f'<a href="{FILES}' not in html:
        return html
    if not files:
        return _FILE_LINK.sub(r"\1", html)
    if pictures:
        html = _PICTURE_LINK.sub(lambda link: _picture(link, pictures), html)
    return html.replace(f'<a href="{FILES}', f'<a href="{escape(files)}')


def _picture(link: re.Match[str], pictures: str) -> str:
    alt = _TAG.sub("", link["text"]).replace('"', "&quot;")
    source = f"{escape(pictures)}{link['path']}?show=1"
    picture = f'<img src="{source}" alt="{alt}" loading="lazy" decoding="async">'
    return f'<a href="{FILES}{link["path"]}">{picture}</a>'


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
    if href.startswith(FILES):
        return f'<a href="{escape(href)}"{named}>'
    return f'<a href="{escape(href)}"{named} {OUTSIDE}>'


def image_link(href: str, alt: str) -> str:
    """An image is not loaded but offered as a link that names its host, or its path."""
    if href.startswith(FILES):
        path = escape(unquote(href.removeprefix(FILES)), quote=False)
        named = f"{escape(alt, quote=False)} <small>{path}</small>" if alt else path
        return f'<a href="{escape(href)}" class="image-link">{named}</a>'
    text = f"{escape(alt or 'image', quote=False)} <small>{escape(host(href), quote=False)}</small>"
    return f'<a class="image-link" href="{escape(href)}" {OUTSIDE}>{text}</a>'
