"""What of a conversation is cleared, summarised, dropped or cut, decided without I/O.

A *unit* is what cannot be parted: an answer with calls and the results of those calls, or any other
message. A *turn* begins with a message of the person. Sizes are in tokens, as estimated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from web.harness.memory.summaries import is_summary
from web.harness.values.messages import (
    ContentBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from web.harness.values.tokens import block_tokens, message_tokens

KEPT_ROUNDS = 2
"""The newest rounds of results are never cleared: the model is at work with them."""

MIN_CLEARED = 60
"""A result of fewer tokens takes hardly more room than the words that would stand for it."""

CLEARED = "[Cleared to make room"


@dataclass(frozen=True, slots=True)
class Cleared:
    """`results` is how many were cleared."""

    messages: list[Message]
    results: int


def clear_results(
    messages: Sequence[Message],
    *,
    goal: int = 0,
    keep_rounds: int = KEPT_ROUNDS,
    pinned: Collection[str] = (),
) -> Cleared:
    """Clears results of tools, the oldest first, until the messages have `goal` tokens.

    The newest rounds and pinned messages stay. So does what goes with a result: the call, and that
    it was an error. Nothing is cleared twice.
    """
    changed = list(messages)
    rounds = [at for at, message in enumerate(messages) if message.role == "tool"]
    old = rounds[: max(len(rounds) - keep_rounds, 0)]
    total = sum(map(message_tokens, messages))
    count = 0
    for at in old:
        if total <= goal:
            break
        before = messages[at]
        if _is_pinned(messages, at, pinned):
            continue
        content = tuple(map(_cleared, before.content))
        number = sum(one is not other for one, other in zip(content, before.content, strict=True))
        if number:
            changed[at] = replace(before, content=content)
            total -= message_tokens(before) - message_tokens(changed[at])
            count += number
    return Cleared(changed, count)


def count_cleared(messages: Sequence[Message], originals: Mapping[str, Message]) -> int:
    """How many results are cleared here that were not in the originals, which go by their ids."""
    return sum(
        before is not after and _is_cleared(after) and not _is_cleared(before)
        for message in messages
        if message.role == "tool" and message.id in originals
        for before, after in zip(originals[message.id].content, message.content, strict=True)
    )


def without_old_thinking(messages: Sequence[Message], turn_id: str | None) -> list[Message]:
    """The messages without what was thought before the turn `turn_id`: it has led to its answer."""
    start = turn_place(messages, turn_id)
    return [
        _unthought(message) if at < start and message.role == "assistant" else message
        for at, message in enumerate(messages)
    ]


@dataclass(frozen=True, slots=True)
class Plan:
    """`old` is to be replaced by a summary of it, in front of `kept`. Both are in order.

    A summary that stands there already is in neither of them.
    """

    old: tuple[Message, ...]
    kept: tuple[Message, ...]

    @property
    def tokens(self) -> int:
        """What the old messages take."""
        return sum(map(message_tokens, self.old))


def plan(
    messages: Sequence[Message],
    *,
    budget: int,
    turn_id: str | None = None,
    pinned: Collection[str] = (),
) -> Plan:
    """Parts the oldest messages from the newest, which are kept as far as `budget` tokens go.

    The person's message of the turn, the newest unit and pinned ones are kept in any case. Where
    the whole turn fits, what is kept begins with a message of the person.
    """
    found = units(messages)
    turn = turn_place(messages, turn_id)
    turn_unit = next((at for at, unit in enumerate(found) if unit.start <= turn < unit.stop), 0)
    stays = {
        at
        for at, unit in enumerate(found)
        if at == turn_unit or any(messages[place].id in pinned for place in unit)
    }
    summaries = {at for at, unit in enumerate(found) if is_summary(messages[unit.start])}
    sizes = [sum(message_tokens(messages[place]) for place in unit) for unit in found]
    left = budget - sum(sizes[at] for at in stays)
    newest = [0 if at in stays or at in summaries else size for at, size in enumerate(sizes)]
    fitting = sum(total <= left for total in accumulate(reversed(newest)))
    cut = min(len(found) - fitting, max(len(found) - 1, 0))
    if cut <= turn_unit:
        cut = next(
            (at for at in range(cut, turn_unit) if messages[found[at].start].role == "user"),
            turn_unit,
        )
    old = [at for at in range(cut) if at not in stays and at not in summaries]
    kept = [at for at in range(len(found)) if at not in summaries and (at >= cut or at in stays)]
    return Plan(_of(messages, found, old), _of(messages, found, kept))


def units(messages: Sequence[Message]) -> list[range]:
    """The places of the messages of each unit."""
    starts = [at for at, message in enumerate(messages) if message.role != "tool" or at == 0]
    stops = [*starts[1:], len(messages)] if starts else []
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def turn_place(messages: Sequence[Message], turn_id: str | None) -> int:
    """Where the turn begins with the message `turn_id`, else where the newest one does."""
    places = [at for at, message in enumerate(messages) if message.id == turn_id]
    said = [
        at
        for at, message in enumerate(messages)
        if message.role == "user" and not is_summary(message)
    ]
    return (places or said or [0])[-1]


def linked(messages: Sequence[Message]) -> list[Message]:
    """The messages, each the child of the one before it."""
    found: list[Message] = []
    for message in messages:
        parent_id = found[-1].id if found else None
        if message.parent_id != parent_id:
            message = replace(message, parent_id=parent_id)
        found.append(message)
    return found


def _of(messages: Sequence[Message], found: list[range], chosen: list[int]) -> tuple[Message, ...]:
    return tuple(messages[place] for at in chosen for place in found[at])


def _is_pinned(messages: Sequence[Message], at: int, pinned: Collection[str]) -> bool:
    """Whether a round of results, or the answer that asked for it, is pinned."""
    return messages[at].id in pinned or (at > 0 and messages[at - 1].id in pinned)


def _cleared(block: ContentBlock) -> ContentBlock:
    if not isinstance(block, ToolResultBlock) or block_tokens(block) < MIN_CLEARED:
        return block
    if _is_cleared(block):
        return block
    pictures = len(block.pictures)
    also = f" and {pictures} {'picture' if pictures == 1 else 'pictures'}" if pictures else ""
    text = (
        f"{CLEARED}: this result had {len(block.text):,} characters{also}. "
        "Call the tool again if it is needed.]"
    )
    return replace(block, content=(TextBlock(text),))


def _is_cleared(block: ContentBlock) -> bool:
    return isinstance(block, ToolResultBlock) and block.text.startswith(CLEARED)


def _unthought(message: Message) -> Message:
    content = tuple(block for block in message.content if not isinstance(block, ThinkingBlock))
    return replace(message, content=content) if content and content != message.content else message
