"""What the API tells of each chat in a list, and of one as a whole."""

from __future__ import annotations

from typing import Any

from web.chats.chat import Chat
from web.chats.records.records import UNTITLED, ChatRecord


def active_run(chat: Chat) -> str | None:
    """The run under way, or one that stands still; one whose result is out may still be put away,
    and is none."""
    if chat.transcript.halted:
        return next(iter(chat.transcript.halted))
    turn = chat.turn or chat.elsewhere
    return turn.run_id if turn and chat.run_state in ("working", "asking", "paused") else None


def summary_of(chat: Chat | ChatRecord) -> dict[str, Any]:
    if isinstance(chat, ChatRecord):
        # Nobody has looked into it since the server started.
        return {
            "id": chat.id,
            "title": chat.title or UNTITLED,
            "model": chat.model,
            "state": chat.state,
            "active_run": None,
            "created_at": chat.created_at,
            "updated_at": chat.order,
        }
    return {
        "id": chat.id,
        "title": chat.title,
        "model": chat.record.model,
        # A run that stands still asks nothing that a program finds among its questions.
        "state": "paused" if chat.transcript.halted else chat.state,
        "active_run": active_run(chat),
        "created_at": chat.record.created_at,
        "updated_at": chat.record.order,
    }
