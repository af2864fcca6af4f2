"""Messages of a conversation and the content blocks they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]

JsonObject = dict[str, Any]
"""A JSON object: string keys, JSON values."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text, markdown where an assistant wrote it."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What a model thought before it answered.

    `signature` is the provider's own seal: opaque, sent back unchanged to the same provider,
    never shown. A redacted block has empty text and only the signature.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    """A model's request to call one tool.

    `id` is unique within the conversation. `arguments` is what the model sent; where that was no
    JSON object, `arguments` is empty and `malformed` holds the raw text, so that the model can be
    told what was wrong with it.
    """

    id: str
    name: str
    arguments: JsonObject = field(default_factory=dict)
    malformed: str | None = None
    type: Literal["tool_use"] = "tool_use"


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The one answer to one `ToolUseBlock`, matched by `call_id`."""

    call_id: str
    content: tuple[TextBlock, ...]
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"

    @property
    def text(self) -> str:
        """The text of all content blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content)


ContentBlock = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `parent_id` names the message it follows, None for the first.

    A `tool` message holds the results of all calls of the assistant message before it, in the
    order of the calls.
    """

    id: str
    role: Role
    content: tuple[ContentBlock, ...]
    parent_id: str | None = None

    @property
    def text(self) -> str:
        """The text blocks joined, without thinking, calls and results."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))

    @property
    def size(self) -> int:
        """Length in characters of all that a model would be sent."""
        return sum(_block_size(block) for block in self.content)


def _block_size(block: ContentBlock) -> int:
    match block:
        case TextBlock() | ThinkingBlock():
            return len(block.text)
        case ToolUseBlock():
            return len(block.name) + len(str(block.arguments)) + len(block.malformed or "")
        case ToolResultBlock():
            return sum(len(part.text) for part in block.content)
