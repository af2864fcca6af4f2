"""How the context of a model is divided among what is always sent, the messages and the answer."""

from __future__ import annotations

from dataclasses import dataclass

ANSWER_SHARE = 4
"""A model whose whole context is hardly more than the longest answer keeps this part for it."""

MARGIN_SHARE = 50
"""This part of the context is left to what an estimate misses."""

NEAR_PERCENT = 88
"""From here on, of the room for messages, the context is made shorter before it has to be."""

GOAL_PERCENT = 60
"""So much of the room for messages is used afterwards: it is done seldom, and keeps enough."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """Sizes of whole requests, in tokens.

    `fixed` is the system prompt and the tools. A request of more than `room` leaves no place for
    the answer; from `near` on it is shortened, if it can be down to `goal`.
    """

    limit: int
    fixed: int
    room: int
    near: int
    goal: int

    @classmethod
    def of(cls, limit: int, fixed: int, max_tokens: int) -> ContextBudget:
        """For a context of `limit` tokens, answers included, of which one may have `max_tokens`."""
        answer = min(max_tokens, limit // ANSWER_SHARE, max(limit - fixed, 0) // 3)
        room = limit - answer - limit // MARGIN_SHARE
        messages = max(room - fixed, 0)
        near, goal = messages * NEAR_PERCENT // 100, messages * GOAL_PERCENT // 100
        return cls(limit, fixed, room, fixed + near, fixed + goal)

    @property
    def for_messages(self) -> int:
        """What is left for messages; 0 where system prompt and tools are too long by themselves."""
        return max(self.room - self.fixed, 0)

    def answer_tokens(self, tokens: int, max_tokens: int) -> int:
        """How long an answer may become after a request of so many tokens; at least 1."""
        return max(min(max_tokens, self.limit - tokens - self.limit // MARGIN_SHARE), 1)
