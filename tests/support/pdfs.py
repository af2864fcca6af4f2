"""Small PDFs, written out by hand."""

from __future__ import annotations

from collections.abc import Sequence


def pdf(*pages: str | bytes, size: tuple[float, float] = (612, 792), trailer: bytes = b"") -> bytes:
    """A PDF with a page for each text, or for each stream of drawing commands in bytes."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, page in enumerate(pages):
        objects += _page(5 + 2 * number, page, size)
    return _file(objects, trailer)


def _page(content: int, page: str | bytes, size: tuple[float, float]) -> list[bytes]:
    lines = page.splitlines() if isinstance(page, str) else ()
    text = "BT /F1 18 Tf 72 700 Td 22 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    stream = page if isinstance(page, bytes) else text.encode()
    head = (
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {size[0]} {size[1]}]"
        f"/Resources<</Font<</F1 3 0 R>>>>/Contents {content} 0 R>>"
    )
    return [head.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)]


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    end = b"trailer<</Size %d/Root 1 0 R%s>>\n" % (len(objects) + 1, trailer)
    return out + head + table + end + b"startxref\n%d\n%%%%EOF" % len(out)
