"""Pages and drawings that a chat made, as documents for a frame that may do nothing.

The frame is sandboxed twice, by its element and by its answer: an origin of its own, no script, no
form, no way out. Nothing is fetched: the policy of the answer forbids it. What no policy governs,
that a browser connects ahead to a host that a page names, and on a click before it is told that it
may not, is taken out of the page: see `layouts/framed_html.py`.
"""

from __future__ import annotations

from base64 import b64encode

from markupsafe import escape
from starlette.responses import HTMLResponse, Response

from web.harness.builtin.chat_files import OpenFile
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import LimitExceeded
from web.ui.files.file_bytes import SANDBOX
from web.ui.layouts.layouts import MAX_FRAME_BYTES
from web.ui.layouts.places import NOBODY, NotLaidOut, Whose
from web.ui.layouts.workshop import Workshop

# An image is drawn by itself: no script of it runs, and it fetches nothing, not even ahead.
_DRAWING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Drawing</title>'
    "<style>body{{margin:0;display:grid;place-items:center;min-height:100vh}}"
    "img{{max-width:100%;max-height:100vh}}</style>"
    '<img alt="" src="data:image/svg+xml;base64,{}">'
)


_WORDS = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>'
    "<style>body{{font:1rem/1.6 system-ui,sans-serif;margin:1.5rem}}</style><p>{}"
)


async def frame_response(file: OpenFile, workshop: Workshop, whose: Whose = NOBODY) -> Response:
    """The document for a frame. Raises LimitExceeded for one that is too large."""
    if file.size > MAX_FRAME_BYTES:
        raise LimitExceeded("This file is too large to be shown here.", hint="Download it.")
    headers = {
        "content-security-policy": SANDBOX,
        "x-dns-prefetch-control": "off",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-store",
    }
    if file.media_type == "image/svg+xml":
        html = await _drawing(file)
    else:
        html = await _page(file, workshop, whose)
    return HTMLResponse(html, headers=headers)


async def _drawing(file: OpenFile) -> str:
    data = await file.read(0, MAX_FRAME_BYTES)
    return await run_in_thread(lambda: _DRAWING.format(b64encode(data).decode()))


async def _page(file: OpenFile, workshop: Workshop, whose: Whose) -> str:
    """Always in a process: also few bytes may nest so that they take long."""
    try:
        laid = await workshop.lay_out("page", file, whose=whose)
    except NotLaidOut as fault:
        return _WORDS.format(escape(f"{fault.words} It can be read as it is written."))
    if not laid.done:
        return _WORDS.format("This page changes each time it is read, so it is not shown.")
    return laid.text
