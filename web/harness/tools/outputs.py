"""What a tool returned, turned into what a model is sent."""

from __future__ import annotations

import json
from dataclasses import replace

from web.harness.tools.tool import ToolOutput
from web.harness.tools.words import clean, shorten
from web.harness.values.errors import ToolError
from web.harness.values.events import ResultPart
from web.harness.values.messages import ImageBlock, ResultContent, TextBlock
from web.harness.values.text import amount

MAX_PARTS = 50
MAX_PART_CHARS = 8_000
"""Of the text of one part; the model may be sent more."""

MAX_PICTURES = 4
MAX_PICTURE_BYTES = 4_000_000
"""Of one result: so many, and so much together. What a browser shows of a long page fits in, and
a hundred calls stay below what a process can hold."""

MAX_FILES = 100
"""That a result names as made or changed."""

MAX_TITLE_CHARS = 300
MAX_URI_CHARS = 2_000


def as_output(value: object) -> ToolOutput:
    """Text and a picture as they are, None as empty text, anything else as JSON.

    Raises ToolError when the value has no JSON form.
    """
    if isinstance(value, ToolOutput):
        return value
    if isinstance(value, ImageBlock):
        return ToolOutput((value,))
    if value is None:
        return ToolOutput.of("")
    if isinstance(value, str):
        return ToolOutput.of(str(value))
    return ToolOutput.of(_json_text(value))


def _json_text(value: object) -> str:
    """JSON of plain values by the standard library, of dataclasses, models, dates by pydantic."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass
    from pydantic_core import to_json

    try:
        # Read back, so that both ways write the same spaces.
        plain = json.loads(to_json(value, inf_nan_mode="strings"))
        return json.dumps(plain, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise ToolError(
            f"The tool returned a value of type {type(value).__name__}, "
            "which cannot be written as JSON."
        ) from None


def bounded(output: ToolOutput, max_chars: int | None) -> ToolOutput:
    """The output as encodable text of at most `max_chars` characters, with the first pictures.

    What is longer is cut at its end, and words after the cut say how much is missing. Those words
    count as part of the limit, unless it is too small to hold them. Pictures beyond their own limit
    are named in place of being there. The parts for a person have limits of their own.
    """
    content = _bounded_text(_bounded_pictures(output.content), max_chars)
    parts, files = _bounded_parts(output.parts), output.files[:MAX_FILES]
    return ToolOutput(content, output.is_error, parts, files, output.plan)


def _bounded_text(
    content: tuple[ResultContent, ...], max_chars: int | None
) -> tuple[ResultContent, ...]:
    total = sum(len(block.text) for block in content if isinstance(block, TextBlock))
    if max_chars is None or total <= max_chars:
        return tuple(
            TextBlock(clean(block.text)) if isinstance(block, TextBlock) else block
            for block in content
        )
    words = f"\n\n[Cut here: the result has {total:,} characters, the limit is {max_chars:,}.]"
    left = max(0, max_chars - len(words))
    kept: list[ResultContent] = []
    last = -1
    for block in content:
        if isinstance(block, TextBlock) and left > 0:
            # Cut before it is cleaned: there may be megabytes.
            text = clean(block.text[:left])
            left -= len(text)
            last = len(kept)
            kept.append(TextBlock(text))
        elif not isinstance(block, TextBlock):
            kept.append(block)
    before = kept[last] if last >= 0 else None
    if isinstance(before, TextBlock):
        kept[last] = TextBlock(before.text + words)
        return tuple(kept)
    return (TextBlock(words.lstrip()), *kept)


def _bounded_pictures(content: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
    """The first pictures as far as they fit, those after them with a reason in place of data."""
    kept: list[ResultContent] = []
    count = total = 0
    for block in content:
        if isinstance(block, ImageBlock) and not block.left_out:
            if count >= MAX_PICTURES or total + len(block.data) > MAX_PICTURE_BYTES:
                most = f"{MAX_PICTURES} pictures of {amount(MAX_PICTURE_BYTES)} together"
                named = replace(block, left_out=f"a result brings at most {most}")
                kept.append(TextBlock(named.line))
                continue
            count, total = count + 1, total + len(block.data)
        kept.append(block)
    return tuple(kept)


def _bounded_parts(parts: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    """The first `MAX_PARTS`, none with more text than is shown; then how many there were."""
    kept = tuple(
        replace(
            part,
            text=clean(part.text[:MAX_PART_CHARS]),
            size=part.size or len(part.text),
            title=clean(shorten(part.title, MAX_TITLE_CHARS)),
            uri=clean(shorten(part.uri, MAX_URI_CHARS)),
        )
        for part in parts[:MAX_PARTS]
    )
    if len(parts) <= MAX_PARTS:
        return kept
    return (*kept, ResultPart("note", f"The first {MAX_PARTS} of {len(parts):,} parts are shown."))
