"""Serves the bytes of a chat's files, piece by piece, as what no browser runs in this server's
name.

Whatever a file holds, its answer says `sandbox`: a page of it has an origin of its own, runs no
script and loads nothing, also where somebody opens it by its address.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from web.harness.builtin.chat_files import OpenFile
from web.harness.tools.sniff import TEXT, UNKNOWN
from web.ui.files.blobs import SHOWN

PIECE_BYTES = 256 * 1024

FRAMED = ("text/html", "image/svg+xml")
"""What is active where a browser shows it: only ever in a frame that may do nothing."""

SANDBOX = "; ".join(
    (
        "sandbox",
        "default-src 'none'",
        # What the file brings along itself; nothing is fetched.
        "img-src data:",
        "media-src data:",
        "font-src data:",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def file_response(
    request: Request,
    opened: AbstractAsyncContextManager[OpenFile],
    name: str,
    *,
    inline: bool = False,
) -> Response:
    """A file as the answer, or the one range of it that was asked for.

    `name` is what it is called when it is saved. With `inline` a picture or a sound is shown in
    place. Raises what opening it raises.
    """
    async with AsyncExitStack() as stack:
        file = await stack.enter_async_context(opened)
        headers = _headers(file, name, inline=inline and file.media_type in SHOWN)
        if "etag" in headers and _is_known(request, headers["etag"]):
            return Response(status_code=304, headers=headers)
        start, end, status = 0, file.size, 200
        asked = _asked(request, file.size, headers.get("etag", ""))
        if asked is not None:
            start, end = asked
            if start >= end:
                headers["content-range"] = f"bytes */{file.size}"
                return Response(status_code=416, headers=headers)
            status = 206
            headers["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
        else:
            # Packed, it would have no length, and no range of it could be fetched later.
            headers["content-encoding"] = "identity"
        headers["content-length"] = str(end - start)
        return _FileBody(file, start, end, status, headers, stack.pop_all())


class _FileBody(Response):
    """Sends a part of an open file; closes it however that ends."""

    def __init__(
        self,
        file: OpenFile,
        start: int,
        end: int,
        status: int,
        headers: dict[str, str],
        stack: AsyncExitStack,
    ) -> None:
        super().__init__(None, status, headers)
        self._file = file
        self._start = start
        self._end = end
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            if scope["method"] != "HEAD":
                async for piece in pieces(self._file, self._start, self._end):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def pieces(file: OpenFile, start: int, end: int) -> AsyncIterator[bytes]:
    """The bytes from `start` to before `end`; fewer where somebody cuts the file meanwhile."""
    while start < end:
        piece = await file.read(start, min(PIECE_BYTES, end - start))
        if not piece:
            break
        start += len(piece)
        yield piece


def disposition(name: str, *, inline: bool = False) -> str:
    """The header by which a file is saved under its name (RFC 6266), also one in other scripts."""
    plain = "".join(char if " " <= char <= "~" and char not in '"\\%' else "_" for char in name)
    place = "inline" if inline else "attachment"
    return f"{place}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _headers(file: OpenFile, name: str, *, inline: bool) -> dict[str, str]:
    media_type = file.media_type or UNKNOWN
    text = media_type == TEXT or media_type in FRAMED
    headers = {
        "content-type": f"{media_type}; charset=utf-8" if text else media_type,
        "content-disposition": disposition(name, inline=inline),
        "content-security-policy": SANDBOX,
        "x-content-type-options": "nosniff",
        "x-dns-prefetch-control": "off",
        "referrer-policy": "no-referrer",
        # Every look asks again: a file may be another one by then.
        "cache-control": "private, no-cache",
        "accept-ranges": "bytes",
    }
    if file.sha256:
        headers["etag"] = f'"{file.sha256}"'
    return headers


def _is_known(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(","))


def _asked(request: Request, size: int, tag: str) -> tuple[int, int] | None:
    """The first byte and the one after the last of the range that is asked for; None for all.

    What is not one range of bytes is passed over, as is one of a file that has changed since.
    """
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or match.group() == "bytes=-":
        return None
    if request.headers.get("if-range", tag) != tag:
        return None
    first, last = match[1], match[2]
    if not first:
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, size) if last else size
