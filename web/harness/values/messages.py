"""Messages of a conversation and the content blocks they hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from web.harness.values.text import amount

Role = Literal["user", "assistant", "tool"]

JsonObject = dict[str, Any]
"""A JSON object: string keys, JSON values."""

CHARS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
MAX_PICTURE_TOKENS = 1_600
"""What a picture costs a model, roughly: the vendors make larger ones smaller."""

SUMMARY_URI = "harness:summary"
"""Of the attachment that stands for the oldest part of a conversation."""

CONVERSATION_URI = "harness:conversation"
"""Of the attachment that a model is asked to sum up."""

MAX_NAME_CHARS = 100
"""Of a picture's name in a line of text."""


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
class ImageBlock:
    """A picture that a person attached or that a tool returned.

    `media_type` is what its bytes are, whatever a name says; `width` and `height` are in pixels, 0
    where they are not known. The bytes are in no event and no JSON: `sha256` names them. Where a
    picture is left out, `left_out` says why, a model reads `line` in its place, and of the data
    only `length` is left.
    """

    media_type: str
    sha256: str
    data: bytes = field(repr=False, compare=False)
    name: str = ""
    width: int = 0
    height: int = 0
    left_out: str = ""
    length: int = 0
    type: Literal["image"] = "image"

    @property
    def line(self) -> str:
        """The picture in words: `[picture plan.png, PNG, 6.1 MB: left out, WHY]`."""
        kind = self.media_type.removeprefix("image/").upper()
        pixels = f", {self.width:,} x {self.height:,} pixels" if self.width else ""
        length = len(self.data) or self.length
        bytes_ = f", {amount(length)}" if length else ""
        why = f": left out, {self.left_out}" if self.left_out else ""
        name = " ".join(self.name.split())[:MAX_NAME_CHARS]
        return f"[picture{f' {name}' if name else ''}, {kind}{bytes_}{pixels}{why}]"

    @property
    def size(self) -> int:
        """An estimate: the characters of a text that would cost a model as much."""
        if self.left_out:
            return len(self.line)
        tokens = -(-self.width * self.height // PIXELS_PER_TOKEN) or MAX_PICTURE_TOKENS
        return CHARS_PER_TOKEN * min(tokens, MAX_PICTURE_TOKENS)


ResultContent = TextBlock | ImageBlock
"""What the result of a tool is made of."""


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
    content: tuple[ResultContent, ...]
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def pictures(self) -> tuple[ImageBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ImageBlock))

    @property
    def size(self) -> int:
        """Length in characters of all that a model would be sent; pictures as estimated."""
        return sum(map(_block_size, self.content))


@dataclass(frozen=True, slots=True)
class ResourceBlock:
    """A text that a person put beside a message, and that somebody else wrote.

    `source` names who gave it (such as an MCP server), `uri` where it lies there; either may be ''.
    Where it stands for a file that is not in the message, `text` says so and `file_bytes` is the
    file's size.
    """

    uri: str
    name: str
    media_type: str
    text: str
    source: str = ""
    file_bytes: int | None = None
    type: Literal["resource"] = "resource"

    @property
    def framed(self) -> str:
        """What a model reads: where it comes from, the text, and a mark where it ends.

        The mark is made from all of it, so no text can hold its own and pretend to end sooner.
        """
        about = [self.name, self.uri, self.media_type, self.source, self.text]
        mark = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
        named = {"name": self.name, "uri": self.uri, "type": self.media_type, "from": self.source}
        told = json.dumps({key: value for key, value in named.items() if value}, ensure_ascii=False)
        return (
            f"[Attachment {mark} {told}. It is material for the message, not written by the "
            f"person, and ends at the line with the same number.]\n{self.text}\n"
            f"[End of attachment {mark}]"
        )


AttachedBlock = ResourceBlock | ImageBlock
"""What a person may put beside a message."""

ContentBlock = (
    TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ResourceBlock | ImageBlock
)


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
        """The text blocks joined, without thinking, calls, results and attachments."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def attachments(self) -> tuple[ResourceBlock, ...]:
        """The texts beside a message; its pictures are not among them."""
        return tuple(block for block in self.content if isinstance(block, ResourceBlock))

    @property
    def pictures(self) -> tuple[ImageBlock, ...]:
        """The pictures beside a message, without those of results."""
        return tuple(block for block in self.content if isinstance(block, ImageBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUseBlock))

    @property
    def size(self) -> int:
        """Length in characters of all that a model would be sent; pictures as estimated."""
        return sum(_block_size(block) for block in self.content)


def _block_size(block: ContentBlock) -> int:
    match block:
        case TextBlock() | ThinkingBlock():
            return len(block.text)
        case ToolUseBlock():
            return len(block.name) + len(str(block.arguments)) + len(block.malformed or "")
        case ToolResultBlock() | ImageBlock():
            return block.size
        case ResourceBlock():
            return len(block.framed)
