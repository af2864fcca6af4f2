"""Forms as they come in: their fields of text, and their files."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request

from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import HarnessError, LimitExceeded
from web.harness.values.text import amount, sayable

MAX_FORM_FIELDS = 2_000
"""A field of many choices comes once for each that is chosen."""

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""Of one field of text, and of a request with a message: far more than a message may have, so that
one that is too long is refused by its own limit, and comes back as it was typed."""

_PIECE_CHARS = 64 * 1024
_HALVES = re.compile("\r\n|[\ud800-\udbff][\udc00-\udfff]")
"""What belongs together."""

Fields = dict[str, str]


@asynccontextmanager
async def read_form(
    request: Request, *, max_files: int, kept: str = "Nothing was changed."
) -> AsyncIterator[FormData]:
    """A form with its files, which are on the disk where they are large, and gone at the end.

    Raises HarnessError for one that is too much, or not whole; `kept` are words for its reader.
    """
    _, _, charset = request.headers.get("content-type", "").lower().partition("charset=")
    if charset and charset.strip(' "').partition(";")[0] not in ("utf-8", "utf8"):
        raise HarnessError("Only forms in UTF-8 are taken.", code="unsupported_media_type")
    try:
        form = await request.form(
            max_files=max_files, max_fields=MAX_FORM_FIELDS, max_part_size=MAX_TEXT_BYTES
        )
    except HTTPException as error:
        raise _unreadable(error.detail, max_files, kept) from None
    try:
        yield await _as_meant(form)
    finally:
        await form.close()


async def _as_meant(form: FormData) -> FormData:
    """The form with its texts as they were typed."""
    items = form.multi_items()

    def read() -> FormData:
        return FormData(
            [(name, _text(value) if isinstance(value, str) else value) for name, value in items]
        )

    if sum(len(value) for _, value in items if isinstance(value, str)) > _PIECE_CHARS:
        return await run_in_thread(read, finish=True)
    return read()


def _text(value: str) -> str:
    """Browsers send line ends as CR LF. In pieces, so that others run in between."""
    pieces: list[str] = []
    start = 0
    while start < len(value):
        end = start + _PIECE_CHARS
        if _HALVES.match(value, end - 1):
            end += 1
        pieces.append(sayable(value[start:end].replace("\r\n", "\n")))
        start = end
    return "".join(pieces)


def _unreadable(detail: str, max_files: int, kept: str) -> HarnessError:
    """What the reader of forms says, in words and with the limit."""
    if "Too many files" in detail and max_files:
        words = f"More than {max_files:,} files came at once, the most that is taken."
    elif "Part exceeded" in detail:
        words = f"A text of this form has more than {amount(MAX_TEXT_BYTES)}, the most of one."
    elif "Too many" in detail:
        words = "This form has more in it than is taken."
    else:
        return HarnessError(f"The form cannot be read: {detail}", hint=kept, code="bad_request")
    return LimitExceeded(words, hint=kept, code="too_large")


def fields_of(request: Request, form: FormData) -> Fields:
    """The text fields of a form from `read_form`, also kept for an error page to show again."""
    every: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            every.setdefault(name, []).append(value)
    request.state.every = every
    request.state.fields = {name: values[-1] for name, values in every.items()}
    return dict(request.state.fields)
