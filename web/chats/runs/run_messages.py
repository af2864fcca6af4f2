"""Which messages of a conversation are those of a run: their ids begin with its id."""

from __future__ import annotations

from collections.abc import Iterable

from web.harness.values.messages import Message


def is_of(message: Message, run_id: str) -> bool:
    return bool(run_id) and message.id.startswith(f"{run_id}-")


def has_run(history: Iterable[Message], run_id: str) -> bool:
    """Whether a conversation has messages of a run."""
    return any(is_of(message, run_id) for message in history)


def without_run(history: Iterable[Message], run_id: str) -> list[Message]:
    """A conversation without the messages of a run."""
    return [message for message in history if not is_of(message, run_id)]
