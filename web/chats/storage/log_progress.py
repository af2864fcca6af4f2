"""How far a chat is heard of: what is shown now, and what waits for something before it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from web.chats.chat import Chat
from web.chats.journal.journal import Entry, TurnBegun, TurnSent
from web.harness.sessions.event_log import EventLog
from web.harness.values.events import Event
from web.harness.values.messages import AttachedBlock


class FollowedLog(EventLog, Protocol):
    """An event log that other servers write too."""

    async def follow(self, run_id: str, after: int = 0) -> bool:
        """Has the listener told of a run from a cursor on; returns whether it was told of all
        that was written before the call."""
        ...

    def unfollow(self, run_id: str) -> None: ...

    async def read_whole(self, run_ids: Sequence[str]) -> dict[str, list[Event]]:
        """All events of as many of these runs as are read at once."""
        ...


@dataclass(slots=True, eq=False)
class Progress:
    """How far a chat is: the run that is shown now, what waits for its end, what came early."""

    chat: Chat
    current: TurnBegun | None = None
    begun: TurnBegun | None = None
    """The newest run, also once it has its result."""
    waiting: deque[Entry] = field(default_factory=deque)
    early: dict[str, list[Event]] = field(default_factory=dict)
    cursor: int = 0
    """Of the run that is shown now, while it is loaded."""
    journal: int = 0
    """The last entry that was heard of."""
    loaded: bool = False
    watched: bool = False
    """Whether somebody looks that what waits is sent."""
    blocks: dict[str, AttachedBlock] = field(default_factory=dict)
    ahead: dict[str, list[Event]] = field(default_factory=dict)
    """While it is loaded, the events of the next runs."""
    behind: bool = False
    """The conversation has grown elsewhere, and was not read yet."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, once something that waited was taken in."""

    def expects(self, run_id: str) -> bool:
        """Whether an entry that waits makes a run known."""
        return any(
            isinstance(each, TurnSent | TurnBegun) and each.turn.run_id == run_id
            for each in self.waiting
        )
