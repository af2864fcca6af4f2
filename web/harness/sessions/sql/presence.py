"""How servers on one PostgreSQL see that one of them died: each holds a lock that its connection
takes along when it breaks, whatever machine it ran on.

A lock that is missing is no proof: the connection may have been cut alone, and is made anew then.
So it has to be missing for a while, of a database server that was not started just now.
"""

from __future__ import annotations

import secrets
import time

from web.harness.sessions.sql.database import Transaction

SPACE = 0x4861_726E
"""The first key of these locks; the second is a server's own."""

GONE_SECONDS = 0.9
"""A lock that is missing for so long is not taken again: a cut connection is made anew at once."""

SETTLED_SECONDS = 10.0
"""After the start of the database server: by then all have connected to it again."""


class Presences:
    """The presence of this server, and what it saw of others'."""

    def __init__(self, settled_seconds: float = SETTLED_SECONDS) -> None:
        self.key = str(1 + secrets.randbelow(2**31 - 1))
        self._settled_seconds = settled_seconds
        self._missing: dict[str, float] = {}

    @property
    def lock(self) -> str:
        """Takes the lock for as long as a connection lasts; a second one may have it too."""
        return f"SELECT pg_advisory_lock_shared({SPACE}, {int(self.key)})"

    async def is_gone(self, transaction: Transaction, key: str) -> bool:
        """Whether a server has died. It takes two looks, and in doubt it has not."""
        if not key.isdecimal() or int(key) >= 2**31 or key == self.key:
            return False
        row = await transaction.row(
            "SELECT pg_postmaster_start_time() "
            "< clock_timestamp() - make_interval(secs => :settled), "
            "EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted "
            f"AND classid = {SPACE} AND objid = {int(key)} AND objsubid = 2 AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()))",
            {"settled": self._settled_seconds},
        )
        if row is None or not row[0] or row[1]:
            self._missing.pop(key, None)
            return False
        now = time.monotonic()
        if now - self._missing.setdefault(key, now) < GONE_SECONDS:
            return False
        del self._missing[key]
        return True
