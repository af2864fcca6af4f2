"""The last snapshots of this process: a turn of a long chat need not read all of it again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from web.harness.values.messages import Message

KEPT = 32
"""Sessions. Their messages are mostly those that an open chat holds anyway."""


@dataclass(frozen=True, slots=True)
class Cached:
    """What is stored under a revision and the token of its commit; '' names the history."""

    revision: int
    token: str
    replayable: bool
    conversations: dict[str, tuple[Message, ...]]
    state: str


class SnapshotCache:
    """By session; the one that was not used for longest goes first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._sessions: OrderedDict[str, Cached] = OrderedDict()

    def get(self, key: str, revision: int, token: str) -> Cached | None:
        """What was kept, if it is still what the database has."""
        found = self._sessions.get(key)
        if found is None or (found.revision, found.token) != (revision, token):
            return None
        self._sessions.move_to_end(key)
        return found

    def put(self, key: str, cached: Cached) -> None:
        self._sessions[key] = cached
        self._sessions.move_to_end(key)
        while len(self._sessions) > self._kept:
            self._sessions.popitem(last=False)

    def drop(self, key: str) -> None:
        self._sessions.pop(key, None)
