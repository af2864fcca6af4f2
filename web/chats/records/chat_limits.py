"""How much there may be of chats, and in each."""

from __future__ import annotations

from dataclasses import dataclass, field

from web.chats.records.attachments import AttachmentLimits
from web.harness.values.errors import LimitExceeded

MAX_REASON_CHARS = 10_000
MAX_REQUEST_ID_CHARS = 200


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """`max_draft_chars` is also that of a system prompt. A deletion is final after
    `undo_seconds`."""

    max_chats: int
    max_draft_chars: int
    max_title_chars: int
    undo_seconds: float
    attachments: AttachmentLimits = field(default_factory=AttachmentLimits)


def check_request_id(request_id: str) -> None:
    """Raises LimitExceeded."""
    if len(request_id) > MAX_REQUEST_ID_CHARS:
        raise LimitExceeded(
            f"A request id has at most {MAX_REQUEST_ID_CHARS} characters.",
            hint="Use a shorter one.",
            code="too_long",
        )


def request_of_retry(run_id: str) -> str:
    """Under which a failed run is tried again: however often it is asked for, and on however many
    servers, that is one run."""
    return f"retry of {run_id}"


def check_reason(reason: str) -> None:
    """Of why a call is denied. Raises LimitExceeded."""
    if len(reason) > MAX_REASON_CHARS:
        raise LimitExceeded(
            f"The reason has {len(reason):,} characters; at most {MAX_REASON_CHARS:,} fit.",
            hint="Shorten it. The question is still open.",
            code="too_long",
        )
