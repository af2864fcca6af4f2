"""What a tool returned, turned into what a model is sent."""

from __future__ import annotations

import json
from dataclasses import replace

from web.harness.tools.tool import ToolOutput
from web.harness.tools.words import clean, shorten
from web.harness.values.errors import ToolError
from web.harness.values.events import ResultPart
from web.harness.values.messages import TextBlock

MAX_PARTS = 50
MAX_PART_CHARS = 8_000
"""Of the text of one part; the model may be sent more."""

MAX_TITLE_CHARS = 300
MAX_URI_CHARS = 2_000


def as_output(value: object) -> ToolOutput:
    """Text as it is, None as empty text, anything else as JSON.

    Raises ToolError when the value has no JSON form.
    """
    if isinstance(value, ToolOutput):
        return value
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
    """The output as encodable text of at most `max_chars` characters.

    What is longer is cut at its end, and words after the cut say how much is missing. Those words
    count as part of the limit, unless it is too small to hold them. The parts for a person have
    limits of their own.
    """
    parts = _bounded_parts(output.parts)
    total = sum(len(block.text) for block in output.content)
    if max_chars is None or total <= max_chars:
        blocks = tuple(TextBlock(clean(block.text)) for block in output.content)
        return ToolOutput(blocks, output.is_error, parts)
    words = f"\n\n[Cut here: the result has {total:,} characters, the limit is {max_chars:,}.]"
    left = max(0, max_chars - len(words))
    kept = []
    for block in output.content:
        if left <= 0:
            break
        # Cut before it is cleaned: there may be megabytes.
        kept.append(clean(block.text[:left]))
        left -= len(kept[-1])
    kept = [*kept[:-1], kept[-1] + words] if kept else [words.lstrip()]
    return ToolOutput(tuple(TextBlock(text) for text in kept), output.is_error, parts)


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
