"""What a person attaches to the next message of a chat: texts that somebody else wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web.chats.offer_kinds import ShownAttachment
from web.harness.values.errors import LimitExceeded
from web.harness.values.messages import ResourceBlock

SHOWN_CHARS = 8_000
"""Of an attachment on the page; the model gets all of it."""


@dataclass(frozen=True, slots=True)
class PendingAttachment:
    """One that waits for the message to be sent."""

    id: str
    block: ResourceBlock


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """How much one message may carry; `max_chars` of each."""

    max_count: int = 10
    max_chars: int = 200_000

    def check(self, blocks: Sequence[ResourceBlock]) -> None:
        """Raises LimitExceeded for attachments that do not fit one message together."""
        if len(blocks) > self.max_count:
            raise LimitExceeded(
                f"A message takes at most {self.max_count} attachments; these are {len(blocks)}.",
                hint="Take some off, or send them with another message. Nothing was lost.",
            )
        for block in blocks:
            if len(block.text) > self.max_chars:
                raise LimitExceeded(
                    f"'{(block.name or block.uri)[:80]}' has {len(block.text):,} characters; an "
                    f"attachment takes at most {self.max_chars:,}.",
                    hint="Nothing was attached.",
                    code="too_long",
                )


def shown_attachment(block: ResourceBlock) -> ShownAttachment:
    """An attachment as the page shows it."""
    return ShownAttachment(
        name=block.name or block.uri,
        uri=block.uri,
        source=block.source,
        media_type=block.media_type,
        text=block.text[:SHOWN_CHARS],
        size=len(block.text),
    )
