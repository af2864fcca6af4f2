"""Leases as rows: taken, renewed, given back; each holder has a higher fence than the last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.sql.database import Database, Transaction, Values
from web.harness.values.errors import LeaseLost

TOPIC = "leases"

_WHERE = "tenant_id = :tenant AND user_id = :user AND session_id = :session"


@dataclass(frozen=True, slots=True)
class Scope:
    """A session of an identity, as the values of a statement."""

    identity: HarnessIdentity
    session_id: str

    @property
    def values(self) -> dict[str, str]:
        return {
            "tenant": self.identity.tenant_id,
            "user": self.identity.user_id,
            "session": self.session_id,
        }

    @property
    def key(self) -> str:
        return json.dumps(list(self.values.values()), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether a lease was taken; `holder` has it now, for `seconds` more unless it is renewed."""

    ours: bool
    holder: str
    fence: int
    seconds: float


async def take(
    transaction: Transaction, database: Database, scope: Scope, holder: str, seconds: float
) -> Taken:
    """Takes a lease that nobody has, or whose time has passed.

    A fence begins with the milliseconds of the clock: it is higher than all before, also where
    their row is gone.
    """
    now = database.now
    await transaction.do(
        "INSERT INTO harness_leases (tenant_id, user_id, session_id, holder, fence, expires_at) "
        f"VALUES (:tenant, :user, :session, :holder, CAST({now} * 1000 AS BIGINT), "
        f"{now} + :seconds) "
        "ON CONFLICT (tenant_id, user_id, session_id) DO UPDATE SET holder = excluded.holder, "
        "fence = harness_leases.fence + 1, expires_at = excluded.expires_at "
        f"WHERE harness_leases.expires_at <= {now} OR harness_leases.holder = excluded.holder",
        {**scope.values, "holder": holder, "seconds": float(seconds)},
    )
    row = await transaction.row(
        f"SELECT holder, fence, expires_at - {now} FROM harness_leases WHERE {_WHERE}",
        scope.values,
    )
    if row is None:  # Given back a moment ago.
        return Taken(False, "", 0, 0.0)
    return Taken(row[0] == holder, row[0], int(row[1]), float(row[2]))


async def holder_of(transaction: Transaction, database: Database, scope: Scope) -> str:
    """Who has the lease; '' where it is free. Writes nothing."""
    row = await transaction.row(
        f"SELECT holder FROM harness_leases WHERE {_WHERE} AND expires_at > {database.now}",
        scope.values,
    )
    return "" if row is None else str(row[0])


async def end(transaction: Transaction, holder: str) -> None:
    """Ends the lease of a holder whose process is gone."""
    await transaction.do(
        "UPDATE harness_leases SET expires_at = 0 WHERE holder = :holder", {"holder": holder}
    )


async def check(
    transaction: Transaction, database: Database, scope: Scope, holder: str, *, lock: bool = True
) -> None:
    """Raises LeaseLost; with `lock` nobody else can take the lease until the transaction ends."""
    row = await transaction.row(
        f"SELECT fence FROM harness_leases WHERE {_WHERE} AND holder = :holder "
        f"AND expires_at > {database.now}{database.locked if lock else ''}",
        {**scope.values, "holder": holder},
    )
    if row is None:
        raise lease_lost()


async def renew(
    transaction: Transaction, database: Database, holders: Sequence[str], seconds: float
) -> set[str]:
    """Renews what has not yet run out, and returns who still holds."""
    if database.locked:
        # In one order, so that two servers never wait for each other.
        await transaction.rows(
            "SELECT holder FROM harness_leases WHERE holder IN :holder_list "
            "ORDER BY holder FOR UPDATE",
            {"holder_list": holders},
        )
    await transaction.do(
        f"UPDATE harness_leases SET expires_at = {database.now} + :seconds "
        f"WHERE holder IN :holder_list AND expires_at > {database.now}",
        {"seconds": float(seconds), "holder_list": holders},
    )
    rows = await transaction.rows(
        "SELECT holder FROM harness_leases WHERE holder IN :holder_list "
        f"AND expires_at > {database.now}",
        {"holder_list": holders},
    )
    return {row[0] for row in rows}


async def give_back(transaction: Transaction, scope: Scope, holder: str) -> None:
    """Ends a lease; the row of a session that was never committed goes with it."""
    values: Values = {**scope.values, "holder": holder}
    await transaction.do(
        f"DELETE FROM harness_leases WHERE {_WHERE} AND holder = :holder AND NOT EXISTS "
        f"(SELECT 1 FROM harness_sessions WHERE {_WHERE})",
        values,
    )
    await transaction.do(
        f"UPDATE harness_leases SET expires_at = 0, holder = '' WHERE {_WHERE} "
        "AND holder = :holder",
        values,
    )
    transaction.signal(TOPIC, scope.key)


async def forget(transaction: Transaction, scope: Scope) -> None:
    await transaction.do(f"DELETE FROM harness_leases WHERE {_WHERE}", scope.values)


def lease_lost() -> LeaseLost:
    return LeaseLost(
        "This session was not written: its lease had run out, or somebody else has it.",
        hint="What the other wrote is kept, and so is all before it. Read the session again.",
    )
