"""Pages and drawings that a chat made, as documents for a frame that may do nothing.

The frame is sandboxed twice, by its element and by its answer: an origin of its own, no script, no
form, no way out. Nothing is fetched: the policy of the answer forbids it. What no policy governs,
that browsers connect ahead to a host that a `<link>` or an inner frame names, is taken out of the
page. A link that a person clicks leads nowhere either, by the policy of the page around the frame.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode

from starlette.responses import HTMLResponse, Response

from web.harness.builtin.chat_files import OpenFile
from web.harness.values.errors import LimitExceeded
from web.ui.file_bytes import SANDBOX

MAX_FRAME_BYTES = 10 * 1024 * 1024

_AHEAD = re.compile(rb"<(link|i?frame|fencedframe|portal|object|embed)", re.IGNORECASE)

# An image is drawn by itself: no script of it runs, and it fetches nothing, not even ahead.
_DRAWING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Drawing</title>'
    "<style>body{{margin:0;display:grid;place-items:center;min-height:100vh}}"
    "img{{max-width:100%;max-height:100vh}}</style>"
    '<img alt="" src="data:image/svg+xml;base64,{}">'
)


async def frame_response(file: OpenFile) -> Response:
    """The document for the frame. Raises LimitExceeded for one that is too large."""
    if file.size > MAX_FRAME_BYTES:
        raise LimitExceeded("This file is too large to be shown here.", hint="Download it.")
    data = await file.read(0, MAX_FRAME_BYTES)
    html = await asyncio.to_thread(_document, data, file.media_type)
    headers = {
        "content-security-policy": SANDBOX,
        "x-dns-prefetch-control": "off",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-store",
    }
    return HTMLResponse(html, headers=headers)


def _document(data: bytes, media_type: str) -> bytes:
    if media_type == "image/svg+xml":
        return _DRAWING.format(b64encode(data).decode()).encode()
    # Nothing of these would be loaded, so none is missed; their names stand in nothing else.
    return _AHEAD.sub(_harmless, data)


def _harmless(match: re.Match[bytes]) -> bytes:
    """Another name: for a link one that may stand where links do, so that the head goes on."""
    return b"<meta" if match[1].lower() == b"link" else b"<x-" + match[1]
