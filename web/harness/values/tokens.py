"""How many tokens a request takes, as far as that can be told without the model's own tokenizer.

The estimate counts ASCII text at four characters a token and other text by its bytes. What a
provider reports for a request puts it right from then on; see `LearnedLimits`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import assert_never

from web.harness.values.messages import (
    CHARS_PER_TOKEN,
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ToolSpec

BYTES_PER_TOKEN = 2.5
"""Of text that is not ASCII: a Chinese character has three bytes and takes about a token, a
Cyrillic letter two and takes less."""

PER_MESSAGE = 4
"""Tokens that mark where a message begins and whose it is."""

PER_BLOCK = 8
"""Tokens around a call, a result or a tool: its names, its id, its brackets."""

PER_ATTACHMENT = 80
"""Tokens of the frame around an attachment."""

_DENSITY = {"anthropic": 1.2, "demo": 1.0}
_USUAL_DENSITY = 1.1
"""Tokens of a provider's models for each one estimated: their vocabularies differ."""


def density_of(provider: str) -> float:
    """Tokens for each one estimated, as long as nothing better was learned of a model."""
    return _DENSITY.get(provider, _USUAL_DENSITY)


def text_tokens(text: str) -> int:
    """An estimate; 0 for ''."""
    if text.isascii():
        return -(-len(text) // CHARS_PER_TOKEN)
    ascii_chars = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "replace")) - ascii_chars
    return -(-ascii_chars // CHARS_PER_TOKEN) + int(-(-other_bytes // BYTES_PER_TOKEN))


def message_tokens(message: Message) -> int:
    """An estimate of what one message takes in a request."""
    return PER_MESSAGE + sum(map(block_tokens, message.content))


def block_tokens(block: ContentBlock) -> int:
    """An estimate of what one block takes in a request."""
    match block:
        case TextBlock():
            return text_tokens(block.text)
        case ThinkingBlock():
            # Only what is sealed is sent back; a redacted block is nothing but its seal.
            if block.signature is None:
                return 0
            return text_tokens(block.signature if block.redacted else block.text)
        case ToolUseBlock():
            arguments = block.malformed or _json(block.arguments)
            return PER_BLOCK + text_tokens(block.name) + text_tokens(arguments)
        case ToolResultBlock():
            return PER_BLOCK + sum(map(block_tokens, block.content))
        case ResourceBlock():
            names = text_tokens(block.name) + text_tokens(block.uri)
            return PER_ATTACHMENT + names + text_tokens(block.text)
        case ImageBlock():
            return -(-block.size // CHARS_PER_TOKEN)
        case _:
            assert_never(block)


def tool_tokens(tool: ToolSpec) -> int:
    """An estimate of what a tool's name, description and schema take in each request."""
    schema = _json(tool.input_schema)
    return PER_BLOCK + sum(map(text_tokens, (tool.name, tool.description, schema)))


def _json(value: JsonObject) -> str:
    # Who cannot send a value says so; an estimate is not the place for it.
    return json.dumps(value, ensure_ascii=False, default=str)


class ToolsCounter:
    """Counts the tokens of tools, again only when they have changed: calls share most of them.

    `count` counts those of one tool.
    """

    def __init__(self, count: Callable[[ToolSpec], int] = tool_tokens) -> None:
        self._count = count
        self._tools: tuple[ToolSpec, ...] = ()
        self._tokens = 0

    def __call__(self, tools: tuple[ToolSpec, ...]) -> int:
        if tools != self._tools:
            self._tools, self._tokens = tools, sum(map(self._count, tools))
        return self._tokens
