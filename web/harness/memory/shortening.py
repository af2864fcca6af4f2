"""Cuts what is too long by itself, in the middle, and says how much is gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from web.harness.values.messages import (
    SUMMARY_URI,
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.tokens import message_tokens, text_tokens

_Texts = Callable[[ContentBlock, Role], list[str]]

LEAST_TOKENS = 60
"""A text is not cut below this where it may stay longer."""


def cut(text: str, tokens: int) -> str:
    """The text in about `tokens` tokens: its start, its end, and how many characters are gone.

    Where there is no room to say so, its start alone.
    """
    size = text_tokens(text)
    if size <= tokens:
        return text
    if tokens < LEAST_TOKENS:
        return f"{text[: len(text) * max(tokens - 1, 0) // size]}…"
    chars = max(len(text) * (tokens - 20) // size, 1)
    head = chars * 2 // 3
    gone = len(text) - chars
    return (
        f"{text[:head]}\n[… {gone:,} characters left out here, as there is no room for them …]\n"
        f"{text[len(text) - (chars - head) :]}"
    )


def water_line(sizes: Sequence[int], total: int) -> int:
    """The largest size at which all of them, cut to it, have no more than `total` together."""
    left, rest = total, len(sizes)
    for size in sorted(sizes):
        if size * rest > left:
            return max(left // rest, 0)
        left, rest = left - size, rest - 1
    return max(sizes, default=0)


def shorten(
    messages: Sequence[Message], goal: int, pinned: Collection[str] = ()
) -> tuple[list[Message], int]:
    """The messages with results, long arguments and notes cut so that all have `goal` tokens.

    Returns them with how many were cut. Only where that is not enough answers are cut too, and then
    pictures of results left out. What a person wrote and what is pinned stays as it is.
    """
    found = list(messages)
    free = [at for at, message in enumerate(found) if message.id not in pinned]
    for texts in (_texts, _texts_and_answers):
        excess = sum(map(message_tokens, found)) - goal
        if excess > 0:
            sizes = [size for at in free for size in _sizes(found[at], texts)]
            line = max(water_line(sizes, sum(sizes) - excess), LEAST_TOKENS)
            for at in free:
                found[at] = _mapped(found[at], line, texts)
    if sum(map(message_tokens, found)) > goal:
        for at in free:
            found[at] = _without_pictures(found[at])
    changed = sum(one is not other for one, other in zip(found, messages, strict=True))
    return found, changed


def _sizes(message: Message, texts: _Texts) -> list[int]:
    return [text_tokens(text) for block in message.content for text in texts(block, message.role)]


def _texts_and_answers(block: ContentBlock, role: Role) -> list[str]:
    """What may be cut of a block where it has to be."""
    if isinstance(block, TextBlock) and role == "assistant":
        return [block.text]
    return _texts(block, role)


def _texts(block: ContentBlock, role: Role) -> list[str]:
    """What may be cut of a block."""
    match block:
        case ToolResultBlock():
            return [each.text for each in block.content if isinstance(each, TextBlock)]
        case ToolUseBlock():
            return [*_strings(block.arguments), *([block.malformed] if block.malformed else [])]
        case ResourceBlock(source="", uri=uri) if uri == SUMMARY_URI:
            return [block.text]
        case _:
            return []


def _mapped(message: Message, line: int, texts: _Texts) -> Message:
    if all(size <= line for size in _sizes(message, texts)):
        return message
    content = tuple(
        _cut_block(block, line) if texts(block, message.role) else block
        for block in message.content
    )
    return replace(message, content=content)


def _cut_block(block: ContentBlock, line: int) -> ContentBlock:
    match block:
        case TextBlock():
            return replace(block, text=cut(block.text, line))
        case ToolResultBlock():
            content = tuple(
                replace(each, text=cut(each.text, line)) if isinstance(each, TextBlock) else each
                for each in block.content
            )
            return replace(block, content=content)
        case ToolUseBlock():
            malformed = None if block.malformed is None else cut(block.malformed, line)
            arguments = _cut_strings(block.arguments, line)
            return replace(block, arguments=arguments, malformed=malformed)
        case ResourceBlock():
            return replace(block, text=cut(block.text, line))
        case _:
            return block


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    return [text for each in value for text in _strings(each)] if isinstance(value, list) else []


def _cut_strings(value: Any, line: int) -> Any:
    if isinstance(value, str):
        return cut(value, line)
    if isinstance(value, dict):
        return {key: _cut_strings(each, line) for key, each in value.items()}
    return [_cut_strings(each, line) for each in value] if isinstance(value, list) else value


def _without_pictures(message: Message) -> Message:
    """A tool's pictures in words."""
    if not any(isinstance(block, ToolResultBlock) and block.pictures for block in message.content):
        return message
    return replace(message, content=tuple(_in_words(block) for block in message.content))


def _in_words(block: ContentBlock) -> ContentBlock:
    if not isinstance(block, ToolResultBlock):
        return block
    return replace(block, content=tuple(map(_picture_in_words, block.content)))


def _picture_in_words(block: TextBlock | ImageBlock) -> TextBlock | ImageBlock:
    if isinstance(block, TextBlock) or block.left_out:
        return block
    why = "the model's context has no room for it"
    return replace(block, data=b"", length=len(block.data), left_out=why)
