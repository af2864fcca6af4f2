"""Parts of a snapshot that both forms have, each checked. All raise JsonRefused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from web.harness.tools.pictures import MODEL_TYPES, image_block
from web.harness.values.json_form import Fields, JsonRefused, NotSerialisable, json_copy, kind_of
from web.harness.values.messages import ImageBlock, JsonObject, Message, ToolResultBlock
from web.harness.values.usage import MAX_COST, MAX_TOKENS, Usage


def usage_of(form: Any) -> Usage:
    fields = Fields(form, "usage")
    counts = {name: fields.whole(name, 0) for name in Usage.__slots__}
    for name, count in counts.items():
        if count > MAX_TOKENS:
            raise JsonRefused(f"{fields.name(name)} is more than {MAX_TOKENS:,} tokens.")
    fields.done()
    return Usage(**counts)


def cost_of(fields: Fields, field: str = "cost") -> float | None:
    cost = fields.number_or_none(field)
    if cost is not None and cost > MAX_COST:
        raise JsonRefused(f"{fields.name(field)} is more than {MAX_COST:,.0f} dollars.")
    return cost


def json_objects(form: JsonObject, where: str = "") -> dict[str, JsonObject]:
    """An object of objects, none nested too deep."""
    for name, value in form.items():
        path = f"{where}.{name[:80]}" if where else name
        if not isinstance(value, dict):
            raise JsonRefused(f"{path} is {kind_of(value)} and has to be an object.")
        try:
            json_copy(value, path)
        except NotSerialisable as error:
            raise JsonRefused(error.message) from None
    return form


def seconds(fields: Fields, field: str) -> float:
    """An ISO 8601 time with its zone, as seconds since the epoch."""
    text = fields.text(field)
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return at.timestamp()
    except (ValueError, OverflowError):
        raise JsonRefused(
            f"{fields.name(field)} is {kind_of(text)} and has to be a time."
        ) from None


def checked_pictures(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages; refused where a picture is not what it says to be."""
    for at, message in enumerate(messages):
        for picture in _pictures(message):
            if not picture.data:
                if picture.media_type not in MODEL_TYPES:
                    raise JsonRefused(
                        f"messages[{at}] names a picture of a kind that is not known."
                    )
                continue
            made = image_block(picture.data, sha256=picture.sha256)
            if made is None or made.media_type != picture.media_type:
                raise JsonRefused(
                    f"messages[{at}] holds a picture that is none, or of another kind."
                )
    return messages


def _pictures(message: Message) -> Iterable[ImageBlock]:
    yield from message.pictures
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            yield from block.pictures
