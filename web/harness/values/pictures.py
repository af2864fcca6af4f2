"""Pictures taken out of a conversation, with a line of text in the place of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from web.harness.values.messages import ImageBlock, Message, ToolResultBlock

Judge = Callable[[ImageBlock], str]
"""Says why a picture is left out, '' where it stays."""

_Block = TypeVar("_Block")


def leave_out(messages: Sequence[Message], judge: Judge) -> tuple[Message, ...]:
    """The messages without the pictures that `judge` has a reason against.

    It is asked about the newest first, and not about those that are left out already.
    """
    judged = [_message(message, judge) for message in reversed(messages)]
    return tuple(reversed(judged))


def has_pictures(message: Message) -> bool:
    """Whether a message holds a picture that is not left out."""
    results = (block for block in message.content if isinstance(block, ToolResultBlock))
    pictures = (*message.pictures, *(each for block in results for each in block.pictures))
    return any(not picture.left_out for picture in pictures)


def _message(message: Message, judge: Judge) -> Message:
    if not has_pictures(message):
        return message
    content = reversed([_judged(block, judge) for block in reversed(message.content)])
    return replace(message, content=tuple(content))


def _judged(block: _Block, judge: Judge) -> _Block:
    if isinstance(block, ToolResultBlock):
        content = reversed([_judged(each, judge) for each in reversed(block.content)])
        return replace(block, content=tuple(content))
    if isinstance(block, ImageBlock) and not block.left_out and (why := judge(block)):
        return replace(block, data=b"", length=len(block.data), left_out=why)
    return block
