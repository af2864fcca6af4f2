"""What a session store keeps of one session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from web.harness.sessions.identity import MAX_ID_CHARS, can_be_kept
from web.harness.values.errors import HarnessError
from web.harness.values.json_form import json_copy
from web.harness.values.messages import ContentBlock, Message, TextBlock, ToolUseBlock
from web.harness.values.text import MAX_DEPTH

INLINE_MESSAGES = 200
"""Up to so many are copied at once; more in a thread."""


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """One settled state of a session.

    `history` is the conversation; `conversations` holds further named ones (sub-agents);
    `state` is JSON that agent and application keep. `revision` is set by the store: 0 before the
    first commit, one higher with each. `replayable` is False where a run failed or was cancelled,
    so that the history ends in a partial answer.
    """

    history: tuple[Message, ...] = ()
    conversations: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    revision: int = 0
    replayable: bool = True


def import_legacy(messages: Iterable[Message | Mapping[str, Any]]) -> SessionSnapshot:
    """A snapshot of messages that are there to be shown, and that no run can go on from.

    A message is one of ours, or `{"role": "user" | "assistant", "content": text}` of another
    program. The state is empty, whatever kept them before.
    Raises HarnessError (`invalid_messages`).
    """
    made: list[Message] = []
    for at, message in enumerate(messages):
        before = made[-1].id if made else None
        made.append(
            message if isinstance(message, Message) else _legacy_message(message, at, before)
        )
    ids = [message.id for message in made]
    if len(set(ids)) < len(ids):
        raise HarnessError(
            "Two of these messages have the same id.",
            hint="Nothing was imported.",
            code="invalid_messages",
        )
    return SessionSnapshot(tuple(made), replayable=False)


def _legacy_message(form: Mapping[str, Any], at: int, before: str | None) -> Message:
    role, content = form.get("role"), form.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str):
        raise HarnessError(
            f"messages[{at}] has to be of the role user or assistant, with a text as its content.",
            hint="Nothing was imported.",
            code="invalid_messages",
        )
    named: Literal["user", "assistant"] = "user" if role == "user" else "assistant"
    return Message(f"legacy-{at}", named, (TextBlock(content),), before)


def own_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same messages, sharing nothing that can be changed: the arguments of calls are copied."""
    return tuple(
        _own(message) if message.role == "assistant" and message.tool_uses else message
        for message in messages
    )


def _own(message: Message) -> Message:
    content: tuple[ContentBlock, ...] = tuple(
        ToolUseBlock(block.id, block.name, _fresh(block.arguments), block.malformed)
        if isinstance(block, ToolUseBlock)
        else block
        for block in message.content
    )
    return Message(message.id, message.role, content, message.parent_id)


def _fresh(value: Any) -> Any:
    """A JSON value that shares nothing with another."""
    if isinstance(value, dict):
        return {key: _fresh(each) for key, each in value.items()}
    return [_fresh(each) for each in value] if isinstance(value, list) else value


async def own_messages_of_many(
    named: Mapping[str, Sequence[Message]],
) -> dict[str, tuple[Message, ...]]:
    """The same of conversations by name; in a thread where they are long, so that others go on."""
    if sum(map(len, named.values())) <= INLINE_MESSAGES:
        return _own_all(named)
    return await asyncio.to_thread(_own_all, named)


def _own_all(named: Mapping[str, Sequence[Message]]) -> dict[str, tuple[Message, ...]]:
    return {name: own_messages(messages) for name, messages in named.items()}


async def own_snapshot(snapshot: SessionSnapshot) -> SessionSnapshot:
    """A snapshot that nobody else can change."""
    # No conversation is named '': that is the history here.
    named = await own_messages_of_many({**snapshot.conversations, "": snapshot.history})
    history = named.pop("")
    return replace(snapshot, history=history, conversations=named, state=_fresh(snapshot.state))


def check_names(snapshot: SessionSnapshot) -> None:
    """Raises HarnessError (`invalid_id`) for a name that not every store can keep as it is."""
    for name in snapshot.conversations:
        if not can_be_kept(name):
            raise HarnessError(
                f"A conversation has a name of 1 to {MAX_ID_CHARS} characters, none of them NUL.",
                hint="Nothing was written.",
                code="invalid_id",
            )


def check_json(snapshot: SessionSnapshot) -> None:
    """Raises NotSerialisable for what JSON cannot hold."""
    json_copy(snapshot.state, "state")
    for messages in (snapshot.history, *snapshot.conversations.values()):
        for message in messages:
            for use in message.tool_uses:
                json_copy(use.arguments, f"the arguments of call {use.id}", MAX_DEPTH + 1)
