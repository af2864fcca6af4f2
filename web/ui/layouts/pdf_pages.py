"""A page of a PDF as a picture, with its words. For a process of its own: PDFs are hostile input.

pypdfium2 brings PDFium, which draws without running the scripts that a PDF may hold.
"""

from __future__ import annotations

import os
import struct
import zlib
from base64 import b64encode
from typing import Any

from web.ui.layouts.layouts import Laid, Readable

WIDTH = 1200
"""Of the picture, in pixels, where the page is not too long for it."""
MAX_PIXELS = 4_000_000
MAX_PNG_BYTES = 6 * 1024 * 1024
MAX_CHARS = 20_000

_ENCRYPTED = "This PDF is locked with a password, so it is not shown here. Download it to read it."
_BROKEN = "This PDF is broken, so it is not shown here."
_NO_PAGE = "This page of the PDF is broken, so it is not shown here."


def pdf_page(file: Readable, page: int) -> Laid:
    """The picture of the page nearest to `page` (counted from 1) as PNG in base64.

    Its facts: `page`, `pages`, `width` and `height` of the picture in pixels, `words` of the page,
    `more` where they were cut; or a `fault`.
    """
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_LoadMemDocument64

    # PDFium keeps its last error, and a document without pages sets none: nothing is no PDF.
    FPDF_LoadMemDocument64(b"", 0, None)
    with os.fdopen(os.dup(file.descriptor), "rb") as data:
        try:
            document = PdfDocument(data)
        except PdfiumError as error:
            locked = error.err_code == FPDF_ERR_PASSWORD
            return Laid(facts={"fault": _ENCRYPTED if locked else _BROKEN})
        pages = len(document)
        if not pages:
            return Laid(facts={"fault": _BROKEN})
        page = min(max(1, page), pages)
        facts: dict[str, Any] = {"page": page, "pages": pages}
        try:
            # What a person has filled in belongs to how the page looks.
            document.init_forms()
            shown = document[page - 1]
            png, facts["width"], facts["height"] = _drawn(shown)
            words = shown.get_textpage().get_text_bounded()
        except (PdfiumError, ValueError):
            return Laid(facts={"page": page, "pages": pages, "fault": _NO_PAGE})
        text = words.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\0", "")
        facts |= {"words": text[:MAX_CHARS], "more": len(text) > MAX_CHARS}
        return Laid(b64encode(png).decode(), facts)


def _drawn(page: Any) -> tuple[bytes, int, int]:
    """PNG, width and height; smaller where that would be too many bytes."""
    width, height = page.get_size()
    if not (0 < width < 1e6 and 0 < height < 1e6):
        raise ValueError("A page without a size.")
    scale = min(WIDTH / width, (MAX_PIXELS / (width * height)) ** 0.5)
    while True:
        bitmap = page.render(scale=scale, rev_byteorder=True)
        png = _png(bitmap.width, bitmap.height, bitmap.stride, bytes(bitmap.buffer))
        if len(png) <= MAX_PNG_BYTES:
            return png, bitmap.width, bitmap.height
        scale *= 0.7


def _png(width: int, height: int, stride: int, rgb: bytes) -> bytes:
    """A PNG (ISO/IEC 15948) of rows of red, green and blue, `stride` bytes from each other."""
    packer = zlib.compressobj(6)
    # Before each row stands how it is filtered: not.
    rows = [
        packer.compress(b"\0" + rgb[at : at + 3 * width])
        for at in range(0, height * stride, stride)
    ]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", b"".join(rows) + packer.flush()),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
