"""Snapshots as rows and back, and what of a snapshot is new."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from web.harness.sessions.snapshot import SessionSnapshot, check_names
from web.harness.sessions.sql.cache import Cached
from web.harness.values.codec import message_from_json, message_to_json
from web.harness.values.errors import StoreError
from web.harness.values.json_form import JsonRefused, json_copy
from web.harness.values.messages import Message, ToolResultBlock

HISTORY = ""
"""The name that the history has among the conversations of a session."""

Conversations = Mapping[str, tuple[Message, ...]]


@dataclass(slots=True)
class Changes:
    """What a commit writes. `cuts` are conversations by the position that they are cut at."""

    state: str
    state_changed: bool
    conversations: dict[str, tuple[Message, ...]]
    cuts: dict[str, int] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    new_names: list[str] = field(default_factory=list)
    messages: list[tuple[str, int, str]] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)

    def all_pictures(self) -> set[str]:
        """The names of all pictures of the session, new or not."""
        found: set[str] = set()
        for messages in self.conversations.values():
            for message in messages:
                found.update(each.sha256 for each in message.pictures)
                for block in message.content:
                    if isinstance(block, ToolResultBlock):
                        found.update(each.sha256 for each in block.pictures)
        return found


def changes_of(snapshot: SessionSnapshot, stored: Cached | None) -> Changes:
    """What differs between what is stored and a snapshot; all of it where nothing is known.

    Raises NotSerialisable.
    """
    check_names(snapshot)
    named: dict[str, tuple[Message, ...]] = {HISTORY: tuple(snapshot.history)}
    for name, messages in snapshot.conversations.items():
        named[name] = tuple(messages)
    state = json_row(json_copy(snapshot.state, "state"))
    old: Conversations = stored.conversations if stored is not None else {}
    changes = Changes(state, stored is None or stored.state != state, named)
    changes.gone = [name for name in old if name not in named]
    for name, messages in named.items():
        before = old.get(name, ())
        if name != HISTORY and name not in old:
            changes.new_names.append(name)
        same = shared_length(before, messages)
        if same < len(before):
            changes.cuts[name] = same
        for position, message in enumerate(messages[same:], same):
            form = message_to_json(message, changes.pictures.__setitem__)
            changes.messages.append((name, position, json_row(form)))
    return changes


def shared_length(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many messages two conversations have in common from their beginning."""
    length = min(len(before), len(after))
    # Messages that are the same object are compared at no cost: a turn adds to a long chat.
    if before[:length] == after[:length]:
        return length
    return next(at for at in range(length) if before[at] != after[at])


def snapshot_of_rows(
    revision: int,
    replayable: bool,
    state: str,
    names: Sequence[str],
    messages: Sequence[Sequence[Any]],
    pictures: Mapping[str, bytes],
) -> SessionSnapshot:
    """`messages` are `(conversation, body)` in order. Raises StoreError for what cannot be read."""
    conversations: dict[str, list[Message]] = {name: [] for name in (HISTORY, *names)}
    try:
        for conversation, body in messages:
            form = json.loads(body)
            message = message_from_json(form, pictures.__getitem__, "a message")
            conversations.setdefault(conversation, []).append(message)
        made = {name: tuple(each) for name, each in conversations.items()}
        history = made.pop(HISTORY)
        return SessionSnapshot(history, made, json.loads(state), revision, replayable)
    except JsonRefused as error:
        future = error.code == "from_the_future"
        raise StoreError(
            f"This session cannot be read. {error.message}",
            hint=error.hint or "It was left as it is; other sessions are not touched.",
            code=error.code if future else "store_corrupt",
        ) from None
    except (ValueError, RecursionError):
        raise StoreError(
            "This session cannot be read: a row of it is no JSON.",
            hint="It was left as it is; other sessions are not touched.",
            code="store_corrupt",
        ) from None


def json_row(form: Any) -> str:
    """JSON that every database takes as text and that comes back equal, half characters too."""
    text = json.dumps(form, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(form, allow_nan=False, separators=(",", ":"))
    return text
