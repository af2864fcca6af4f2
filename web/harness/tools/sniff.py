"""What data is, by its bytes: names and senders may say anything.

The list is short and closed on purpose. A type that is named here is one that somebody shows or
judges; all else is `UNKNOWN`, which is only ever offered as a download.
"""

from __future__ import annotations

import codecs
import re

UNKNOWN = "application/octet-stream"
TEXT = "text/plain"

HEAD_BYTES = 64 * 1024
"""So much from the start is enough."""

_STARTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"OggS"), "audio/ogg"),
    # With a tag before it, or the sync of a frame of layer III.
    (re.compile(rb"ID3[\x02-\x04]|\xff[\xfa\xfb\xf2\xf3\xe2\xe3]"), "audio/mpeg"),
    (re.compile(rb"%PDF-\d"), "application/pdf"),
    (re.compile(rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"), "application/zip"),
)

# What a text may hold beside what is written: tab, line feed, form feed, carriage return, escape.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")

# White space, a declaration, comments and a document type, before the first element.
_PROLOGUE = re.compile(
    r"(?:\s+|<\?[^>]{0,1000}\?>|<!--.{0,4000}?-->|<!doctype\s[^>\[]{0,1000}(?:\[[^\]]{0,4000}\]\s{0,1000})?>)",
    re.DOTALL | re.IGNORECASE,
)
_DOCTYPE_HTML = re.compile(r"<!doctype\s+html", re.IGNORECASE)
_SVG = re.compile(r"<(?:[a-z][\w.-]{0,40}:)?svg[\s/>]", re.IGNORECASE)
# The elements by which browsers know a page when nobody tells them what it is, and a few that
# would run something.
_HTML = re.compile(
    r"<(?:html|head|body|title|script|style|iframe|object|embed|link|meta|base|form|table|div|font"
    r"|h1|h2|p|a|b|br|img|svg|math|template|video|audio)(?:[\s/>]|$)",
    re.IGNORECASE,
)


def media_type_of(head: bytes) -> str:
    """The type of data that starts with `head` (the first `HEAD_BYTES` will do), or `UNKNOWN`.

    Text in UTF-8 is `text/html` or `image/svg+xml` where a browser might take it so, else `TEXT`:
    what it is written in (markdown, CSV) only its name can say. Nothing at all is text too.
    """
    for start, media_type in _STARTS:
        if start.match(head):
            return media_type
    text = _text_of(head[:HEAD_BYTES])
    return UNKNOWN if text is None else _type_of_text(text)


def _text_of(head: bytes) -> str | None:
    """The start of a text, or None for what is none. A character may be cut at the end."""
    if _NO_TEXT.search(head):
        return None
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return None


def _type_of_text(text: str) -> str:
    at = 0
    while match := _PROLOGUE.match(text, at):
        if _DOCTYPE_HTML.match(text, at):
            return "text/html"
        at = match.end()
    if _SVG.match(text, at):
        return "image/svg+xml"
    return "text/html" if _HTML.match(text, at) else TEXT
