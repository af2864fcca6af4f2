"""Serves the pictures, sound and files that tools returned, to the person whose chat it is.

A server of tools is a stranger. Only types that no browser runs are shown; everything else is a
download, and nothing here is ever a page.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.harness.values.errors import NotFound
from web.ui.services import UiServices

SHOWN: dict[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
}
"""The types that are shown in place, and how their files end."""

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def blob_routes(services: UiServices) -> list[Route]:
    async def blob(request: Request) -> Response:
        chat = services.chats.get(services.identify(request), request.path_params["chat_id"])
        sha256 = request.path_params["sha256"]
        found = await chat.blobs.fetch(sha256)
        if found is None:
            raise NotFound(
                "This picture or file is not kept any more.",
                hint="Have the tool called once more, or attach it again.",
            )
        headers = _headers(sha256, found.media_type)
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return _ranged(found.data, request.headers.get("range", ""), headers)

    return [Route("/chats/{chat_id}/blobs/{sha256}", blob)]


def _headers(sha256: str, media_type: str) -> dict[str, str]:
    ending = SHOWN.get(media_type)
    place = f'inline; filename="{sha256[:12]}.{ending}"' if ending else "attachment"
    return {
        "content-type": media_type if ending else "application/octet-stream",
        "content-disposition": place,
        # The style is the browser's own, where it shows a picture as a page.
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        "x-content-type-options": "nosniff",
        # Every look asks again, so that it is known who looks; the data itself never changes.
        "cache-control": "private, no-cache",
        "etag": f'"{sha256}"',
        "accept-ranges": "bytes",
    }


def _ranged(data: bytes, asked: str, headers: dict[str, str]) -> Response:
    """All of the data, or the one range that was asked for: players seek by it."""
    match = _RANGE.fullmatch(asked)
    if match is None or match.group() == "bytes=-":
        return Response(data, headers=headers)
    first, last = match[1], match[2]
    if first:
        start, end = int(first), min(int(last or len(data)), len(data) - 1)
    else:
        start, end = max(0, len(data) - int(last)), len(data) - 1
    if start > end:
        return Response(
            status_code=416, headers={**headers, "content-range": f"bytes */{len(data)}"}
        )
    headers = {**headers, "content-range": f"bytes {start}-{end}/{len(data)}"}
    return Response(data[start : end + 1], 206, headers=headers)
