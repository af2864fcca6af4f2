"""What a snapshot holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from web.harness.values.config import AgentConfig
from web.harness.values.errors import SnapshotRefused
from web.harness.values.messages import JsonObject, Message
from web.harness.values.usage import Usage

MAX_ID_CHARS = 128

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in "123456789"]
)
"""Names that are no files on Windows, whatever follows a dot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One settled conversation and all that goes on from it. Nothing live and no secret is in it.

    `usage` and `cost` (US dollars, None where prices are unknown) are those of all its turns.
    `learned_limits` are in the form of `LearnedLimits.as_json`, `pinned` the ids of messages that
    are never condensed, `extensions` the state of each extension by its name. `metadata` is
    the application's. Times are seconds since the epoch.
    """

    session_id: str
    config: AgentConfig = field(default_factory=AgentConfig)
    messages: tuple[Message, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    learned_limits: JsonObject = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    extensions: dict[str, JsonObject] = field(default_factory=dict)
    created_at: float = 0.0
    updated_at: float = 0.0


def checked_session_id(session_id: str) -> str:
    """An id that can name a file anywhere and leads nowhere else. Raises SnapshotRefused."""
    if (
        not isinstance(session_id, str)
        or len(session_id) > MAX_ID_CHARS
        or not _SESSION_ID.fullmatch(session_id)
        or session_id.endswith(".")
        or session_id.partition(".")[0].lower() in _DEVICES
    ):
        shown = repr(session_id)
        raise SnapshotRefused(
            f"{shown if len(shown) <= 80 else shown[:77] + '...'} cannot be the id of a session.",
            hint="An id has letters, digits, dots, dashes and underscores, begins with a letter or "
            f"a digit, and is at most {MAX_ID_CHARS} characters long.",
            code="session_id_refused",
        )
    return session_id
