"""What is attached to messages, as JSON and back. The bytes of pictures are kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from web.harness.values.json_form import Fields, JsonRefused
from web.harness.values.messages import AttachedBlock, ImageBlock, JsonObject, ResourceBlock


def without_bytes(block: AttachedBlock) -> AttachedBlock:
    """A block that names its picture and does not hold it."""
    if not isinstance(block, ImageBlock) or block.left_out or not block.data:
        return block
    return replace(block, data=b"", length=len(block.data))


def blocks_to_json(blocks: Iterable[AttachedBlock]) -> list[JsonObject]:
    return [block_to_json(block) for block in blocks]


def block_to_json(block: AttachedBlock) -> JsonObject:
    form = asdict(without_bytes(block))
    form.pop("data", None)
    return form


def blocks_from_json(forms: Sequence[object]) -> tuple[AttachedBlock, ...]:
    """Raises JsonRefused."""
    return tuple(map(block_from_json, forms))


def block_from_json(form: object) -> AttachedBlock:
    """A block as it was, a picture without its bytes. Raises JsonRefused."""
    fields = Fields(form, "attachment")
    kind = fields.text("type")
    if kind == "image":
        return ImageBlock(
            fields.text("media_type"),
            fields.text("sha256"),
            b"",
            fields.text("name", ""),
            fields.whole("width", 0),
            fields.whole("height", 0),
            fields.text("left_out", ""),
            fields.whole("length", 0),
        )
    if kind != "resource":
        raise JsonRefused(f"{fields.name('type')} is nothing that is attached.")
    size = form.get("file_bytes") if isinstance(form, dict) else None
    return ResourceBlock(
        fields.text("uri"),
        fields.text("name"),
        fields.text("media_type"),
        fields.text("text"),
        fields.text("source", ""),
        size if isinstance(size, int) else None,
    )
