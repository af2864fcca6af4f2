"""Sessions kept in the memory of this process."""

from __future__ import annotations

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.process import ProcessSessionStore
from web.harness.sessions.snapshot import SessionSnapshot


class InMemorySessionStore(ProcessSessionStore):
    """The default `SessionStore`: quick, and gone with the process."""

    def __init__(self) -> None:
        super().__init__()
        self._snapshots: dict[tuple[HarnessIdentity, str], SessionSnapshot] = {}

    async def load(self, identity: HarnessIdentity, session_id: str) -> SessionSnapshot | None:
        return self._snapshots.get((identity, session_id))

    async def keep(
        self, identity: HarnessIdentity, session_id: str, snapshot: SessionSnapshot | None
    ) -> None:
        if snapshot is None:
            self._snapshots.pop((identity, session_id), None)
        else:
            self._snapshots[identity, session_id] = snapshot

    async def ids(self, identity: HarnessIdentity) -> list[str]:
        return [session_id for owner, session_id in self._snapshots if owner == identity]


InMemoryHarnessSessionStore = InMemorySessionStore
"""The same under its full name."""
