"""What a session store keeps of one session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from web.harness.values.messages import Message


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
