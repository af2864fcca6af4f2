"""Which preview a file gets, and what is said where it takes too much."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.opened import opened
from tests.support.pdfs import pdf
from web.harness.builtin.chat_files import OpenFile
from web.ui.files.file_frames import frame_response
from web.ui.files.previews import Preview, Previews
from web.ui.layouts.places import Budget
from web.ui.layouts.workshop import Workshop

pytestmark = pytest.mark.anyio

PATIENT = Budget(seconds=30)
"""On a busy machine a process may take its time to start."""


async def shown(
    previews: Previews, file: OpenFile, path: str, page: int = 1, *, source: bool = False
) -> Preview:
    return await previews.of(file, path, source=source, page=page, files="/files/")


async def test_what_takes_too_long_is_shown_as_it_is_written_and_says_so(tmp_path: Path) -> None:
    previews = Previews(Workshop(Budget(seconds=0.4)))
    with opened(tmp_path / "a.md", b"- <b>\n" * 30_000) as file:
        preview = await shown(previews, file, "a.md")
    assert preview.kind == "code"
    assert preview.words == (
        "This file is too much to lay out in 0.4 seconds. It is shown as it is written."
    )
    assert "- &lt;b&gt;\n" * 100 in str(preview.html)


async def test_code_that_is_highlighted_is_laid_out_in_a_process_however_small(
    tmp_path: Path,
) -> None:
    # One that has no time at all: only what needs no process works.
    idle = Previews(Workshop(Budget(seconds=0)))
    with opened(tmp_path / "a.ini", b"=" * 2000) as file:
        assert "too much to lay out" in (await shown(idle, file, "a.ini")).words
        assert (await shown(Previews(Workshop(PATIENT)), file, "a.ini")).words == ""
        assert (await shown(idle, file, "a.unknown")).words == ""


async def test_a_page_of_a_long_table_is_remembered_and_needs_no_process(tmp_path: Path) -> None:
    data = b"a,b\n" + b"".join(b"%d,2\n" % number for number in range(100_000))
    with opened(tmp_path / "a.csv", data) as file:
        # One that has no time at all: only what needs no process works.
        idle = Previews(Workshop(Budget(seconds=0)))
        assert (await shown(idle, file, "a.csv", 400)).kind == "code"
        previews = Previews(workshop := Workshop(PATIENT))
        for page, first in ((1, "0"), (400, "79800"), (500, "99800")):
            preview = await shown(previews, file, "a.csv", page)
            assert preview.table is not None
            assert (preview.table.count, preview.table.page) == (100_000, page)
            assert preview.table.rows[0][0] == first
            workshop._budget = Budget(seconds=0)


async def test_a_pdf_is_drawn_and_what_cannot_be_is_told(tmp_path: Path) -> None:
    slow = b"q 0 0 600 700 re W n " + b"0 0 m 600 700 l 5 900 200 100 300 300 c B " * 200_000
    with ExitStack() as files:
        good, bad, long = (
            files.enter_context(opened(tmp_path / f"{number}.pdf", data, "application/pdf"))
            for number, data in enumerate((pdf("Hello", "you"), b"%PDF-1.4", pdf(slow)))
        )
        preview = await shown(Previews(Workshop(PATIENT)), good, "a.pdf", 2)
        assert preview.pdf is not None
        assert (preview.pdf.page, preview.pdf.pages, preview.pdf.words) == (2, 2, "you")
        assert preview.pdf.picture.startswith("iVBOR")
        preview = await shown(Previews(Workshop(PATIENT)), bad, "a.pdf")
        assert (preview.pdf, "broken" in preview.words) == (None, True)
        preview = await shown(Previews(Workshop(Budget(seconds=0.6))), long, "a.pdf")
        assert preview.words == (
            "This file is too much to lay out in 0.6 seconds. Download it to read it."
        )


async def test_a_page_that_nests_too_deep_is_told_in_its_frame(tmp_path: Path) -> None:
    with opened(tmp_path / "a.html", b"<div>" * 50_000, "text/html") as file:
        answer = await frame_response(file, Workshop(Budget(seconds=0.6)))
    assert b"too much to lay out in 0.6 seconds" in answer.body
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


async def test_a_text_in_another_encoding_is_decoded_elsewhere(tmp_path: Path) -> None:
    data = b"a;b\n" + b"".join(b"%d;caf\xe9\n" % number for number in range(50_000))
    with opened(tmp_path / "a.csv", data) as file:
        workshop = Workshop(PATIENT)
        previews = Previews(workshop)
        for page in (1, 200):
            preview = await shown(previews, file, "a.csv", page)
            assert (preview.kind, preview.words) == ("table", "Read as Windows-1252.")
            assert preview.table is not None
            assert list(preview.table.rows[0]) == [str(200 * (page - 1)), "café"]
        # Where there is no time for that, its start is shown, and no more of it is decoded.
        workshop._budget = Budget(seconds=0)
        preview = await shown(previews, file, "a.csv", 2)
    assert preview.kind == "code"
    assert "Read as Windows-1252. This file is too much to lay out" in preview.words
    assert 170_000 < len(str(preview.html)) < 200_000


async def test_a_text_in_no_encoding_that_is_known_is_not_shown(tmp_path: Path) -> None:
    data = "Дата;Сумма;Имя\n2026;12345;Анна\n".encode("cp1251") * 1_000
    with opened(tmp_path / "a.csv", data, "application/octet-stream") as file:
        preview = await shown(Previews(Workshop(PATIENT)), file, "a.csv")
    assert (preview.kind, preview.html, preview.table) == ("none", None, None)
    assert "cannot be told for sure" in preview.words
