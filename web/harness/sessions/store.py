"""The contract of every session store."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a store truly gives.

    `durable`: an acknowledged commit survives the process. `compare_and_swap`: a commit by one
    who lost the lease is refused by the store itself. `single_writer`: among whom a lease
    excludes others.
    """

    durable: bool
    compare_and_swap: bool
    single_writer: Literal["process", "host", "cluster"]


class SessionLease(Protocol):
    """The right to write one session, held by one at a time.

    An async context manager that releases at its end. After `release` every other method raises
    `LeaseLost`; releasing twice is fine.
    """

    async def read(self) -> SessionSnapshot:
        """The last committed snapshot, an empty one at first; a copy nobody else can change."""
        ...

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        """Replaces the snapshot, all of it or nothing; returns it with its new revision."""
        ...

    async def release(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class SessionStore(Protocol):
    """Snapshots of sessions by identity and id. Sessions of two identities never meet."""

    @property
    def guarantees(self) -> Guarantees: ...

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> SessionLease:
        """The lease of a session, waiting up to `wait` seconds for another holder.

        Raises SessionConflict when it is still held then.
        """
        ...

    async def list(self, identity: HarnessIdentity) -> list[str]:
        """The ids of all committed sessions of an identity."""
        ...

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        """Forgets a session; an unknown one is fine. Raises SessionConflict while it is leased."""
        ...
