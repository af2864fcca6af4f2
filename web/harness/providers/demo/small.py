"""The demo model `demo:small`, which takes 8,192 tokens and refuses more, as real models do.

It counts for itself and not as the harness estimates, so that what depends on an estimate can be
tried without a key.
"""

from __future__ import annotations

import json
import re

from web.harness.values.errors import ContextTooLong
from web.harness.values.messages import Message, ToolResultBlock, ToolUseBlock
from web.harness.values.model import ModelRequest, ToolSpec
from web.harness.values.tokens import ToolsCounter

SMALL = "small"
CONTEXT_TOKENS = 8_192

_PIECE = re.compile(r"\w{1,6}|[^\w\s]|\n+")
"""What counts as a token: up to six letters of a word, a sign, a line's end."""

_AROUND_MESSAGE = 5
_PER_PICTURE = 800


def refuse_too_long(request: ModelRequest, tools: ToolsCounter) -> None:
    """Raises ContextTooLong for a request that leaves no room for its answer."""
    sent = count_request(request, tools)
    if sent + request.max_tokens <= CONTEXT_TOKENS:
        return
    raise ContextTooLong(
        f"This model's maximum context length is {CONTEXT_TOKENS} tokens. However, you requested "
        f"{sent + request.max_tokens} tokens ({sent} in the messages, {request.max_tokens} in the "
        "completion).",
        hint="Start a new chat, or choose a model with a larger context.",
        limit=CONTEXT_TOKENS,
        counted=sent,
    )


def count_request(request: ModelRequest, tools: ToolsCounter) -> int:
    """Tokens of all that is sent."""
    return (
        _count(request.system_prompt)
        + tools(request.tools)
        + sum(map(_of_message, request.messages))
    )


def count_tool(tool: ToolSpec) -> int:
    """Tokens of a tool's name, description and schema."""
    return _count(tool.name) + _count(tool.description) + _count(json.dumps(tool.input_schema))


def _of_message(message: Message) -> int:
    texts = [message.text, *(block.framed for block in message.attachments)]
    pictures = len(message.pictures)
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            texts += [block.name, block.malformed or json.dumps(block.arguments)]
        elif isinstance(block, ToolResultBlock):
            texts.append(block.text)
            pictures += len(block.pictures)
    return _AROUND_MESSAGE + sum(map(_count, texts)) + pictures * _PER_PICTURE


def _count(text: str) -> int:
    return len(_PIECE.findall(text))
