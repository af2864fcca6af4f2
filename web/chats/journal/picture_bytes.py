"""The bytes of pictures that a message brought along: a journal has their names alone."""

from __future__ import annotations

from dataclasses import replace

from web.chats.chat import Chat, Turn
from web.harness.values.messages import AttachedBlock, ImageBlock


async def turn_with_bytes(chat: Chat, turn: Turn) -> Turn:
    """Raises StoreError."""
    blocks = [await with_bytes(chat, block) for block in turn.attachments]
    return replace(turn, attachments=tuple(blocks))


async def with_bytes(chat: Chat, block: AttachedBlock) -> AttachedBlock:
    """A picture with its bytes; where they are lost, it says so to a model. Raises StoreError."""
    if not isinstance(block, ImageBlock) or block.data or block.left_out:
        return block
    found = await chat.blobs.fetch(block.sha256)
    if found is None:
        return replace(block, left_out="it is not kept any more")
    return replace(block, data=found.data, length=0)
