"""What a person attaches to the next message of a chat: texts, pictures, and names of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web.chats.parts.offer_kinds import ShownAttachment
from web.harness.values.errors import LimitExceeded
from web.harness.values.messages import AttachedBlock, ImageBlock
from web.harness.values.text import amount

SHOWN_CHARS = 8_000
"""Of an attachment on the page; the model gets all of it."""


OWN_FILE = "file of this chat"
"""Where a model is told that a text comes from which is among the chat's files."""


@dataclass(frozen=True, slots=True)
class PendingAttachment:
    """One that waits for the message to be sent."""

    id: str
    block: AttachedBlock


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """How much one message may carry.

    `max_chars` of each text. Pictures have `max_picture_bytes` each and `max_pictures_bytes`
    together, whatever the model: what an API takes beyond that, its provider knows.
    """

    max_count: int = 10
    max_chars: int = 200_000
    max_picture_bytes: int = 8_000_000
    max_pictures_bytes: int = 20_000_000

    def check(self, blocks: Sequence[AttachedBlock]) -> None:
        """Raises LimitExceeded for attachments that do not fit one message together."""
        if len(blocks) > self.max_count:
            raise LimitExceeded(
                f"A message takes at most {self.max_count} attachments; these are {len(blocks)}.",
                hint="Take some off, or send them with another message. Nothing was lost.",
            )
        pictures = 0
        for block in blocks:
            if isinstance(block, ImageBlock):
                pictures += _bytes_of(block)
                self._check_picture(block)
            # Of a file that is not in the message, the model is told a line.
            elif block.file_bytes is None and len(block.text) > self.max_chars:
                raise LimitExceeded(
                    f"'{(block.name or block.uri)[:80]}' has {len(block.text):,} characters; an "
                    f"attachment takes at most {self.max_chars:,}.",
                    hint="Nothing was attached.",
                    code="too_long",
                )
        if pictures > self.max_pictures_bytes:
            raise LimitExceeded(
                f"The pictures of a message have at most {amount(self.max_pictures_bytes)} "
                f"together; these have {amount(pictures)}.",
                hint="Take some off, or send them with another message. Nothing was lost.",
            )

    def _check_picture(self, picture: ImageBlock) -> None:
        if _bytes_of(picture) > self.max_picture_bytes:
            raise LimitExceeded(
                f"'{picture.name[:80]}' has {amount(_bytes_of(picture))}; a picture takes at most "
                f"{amount(self.max_picture_bytes)}.",
                hint="Nothing was attached.",
                code="too_long",
            )


def shown_attachment(block: AttachedBlock) -> ShownAttachment:
    """An attachment as the page shows it."""
    if isinstance(block, ImageBlock):
        return ShownAttachment(
            kind="picture",
            name=block.name or "Picture",
            uri="",
            source="",
            media_type=block.media_type,
            text="",
            size=_bytes_of(block),
            sha256=block.sha256,
        )
    return ShownAttachment(
        kind="text" if block.file_bytes is None else "file",
        name=block.name or block.uri,
        uri=block.uri,
        source=block.source if block.source != OWN_FILE else "",
        media_type=block.media_type,
        text=block.text[:SHOWN_CHARS],
        size=len(block.text) if block.file_bytes is None else block.file_bytes,
    )


def _bytes_of(picture: ImageBlock) -> int:
    """Also of one whose bytes are not in memory."""
    return len(picture.data) or picture.length
