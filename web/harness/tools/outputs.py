"""What a tool returned, turned into what a model is sent."""

from __future__ import annotations

import json

from web.harness.tools.tool import ToolOutput
from web.harness.tools.words import clean
from web.harness.values.errors import ToolError
from web.harness.values.messages import TextBlock


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
    count as part of the limit, unless it is too small to hold them.
    """
    blocks = tuple(TextBlock(clean(block.text)) for block in output.content)
    total = sum(len(block.text) for block in blocks)
    if max_chars is None or total <= max_chars:
        return ToolOutput(blocks, output.is_error)
    words = f"\n\n[Cut here: the result has {total:,} characters, the limit is {max_chars:,}.]"
    left = max(0, max_chars - len(words))
    kept = []
    for block in blocks:
        if left <= 0:
            break
        kept.append(block.text[:left])
        left -= len(kept[-1])
    kept = [*kept[:-1], kept[-1] + words] if kept else [words.lstrip()]
    return ToolOutput(tuple(TextBlock(text) for text in kept), output.is_error)
