"""What the card of a call has room for."""

from __future__ import annotations

import json
from typing import Any

from web.chats.parts.kinds import Call

CARD_ARGUMENTS = 40
"""So many arguments are on a card."""


def cut_short(call: Call, limit: int) -> bool:
    """Whether a card that shows `limit` characters of an argument shows only a part of a call."""
    preview = (call.question.preview if call.question is not None else None) or {}
    arguments = call.arguments or {}
    return (
        bool(preview.get("more"))
        or len(arguments) > CARD_ARGUMENTS
        or any(len(argument_text(value)) > limit for value in arguments.values())
    )


def argument_text(value: Any) -> str:
    """An argument as a person reads it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
