"""The contract of every session store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot, import_legacy
from web.harness.values.errors import SessionConflict
from web.harness.values.messages import Message


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a store truly gives.

    `durable`: an acknowledged commit survives the process. `compare_and_swap`: a commit by one
    who lost the lease is refused by the store itself. `single_writer`: among whom a lease
    excludes others: the tasks of a process, the processes of a host, or all servers.
    """

    durable: bool
    compare_and_swap: bool
    single_writer: Literal["process", "host", "cluster"]


class SessionLease(Protocol):
    """The right to write one session, held by one at a time.

    An async context manager that releases at its end. After `release` every other method raises
    `LeaseLost`; releasing twice is fine. Where a lease ends with time, so does one that was not
    renewed in time: nothing of a later commit is written.
    """

    async def read(self) -> SessionSnapshot:
        """The last committed snapshot, an empty one at first; a copy nobody else can change."""
        ...

    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot:
        """Replaces the snapshot, all of it or nothing; returns it with its new revision.

        Messages are never changed in place: another text is another message. Raises LeaseLost,
        NotSerialisable, StoreError.
        """
        ...

    async def import_legacy(
        self, messages: Iterable[Message | Mapping[str, Any]]
    ) -> SessionSnapshot:
        """Commits messages that are only shown, to a session that has no commit yet.

        The state is empty, and `replayable` False. Raises SessionConflict (`session_exists`).
        """
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
    """Snapshots of sessions by identity and id. Sessions of two identities never meet.

    All methods raise HarnessError (`invalid_id`) for an id that is empty, longer than 200
    characters or no text that can be kept, and StoreError where the store fails.
    """

    @property
    def guarantees(self) -> Guarantees: ...

    async def acquire(
        self, identity: HarnessIdentity, session_id: str, *, wait: float = 0
    ) -> SessionLease:
        """The lease of a session, waiting up to `wait` seconds for another holder.

        Raises SessionConflict when it is still held then.
        """
        ...

    async def list(
        self, identity: HarnessIdentity, *, after: str = "", limit: int | None = None
    ) -> list[str]:
        """The ids of committed sessions of an identity, in rising order of their characters.

        A page of them begins `after` an id and has at most `limit`.
        """
        ...

    async def rename(self, identity: HarnessIdentity, session_id: str, new_id: str) -> None:
        """Gives a session another id. Raises NotFound, and SessionConflict while either is leased
        or where there is a session of the new id (`session_exists`)."""
        ...

    async def delete(self, identity: HarnessIdentity, session_id: str) -> None:
        """Forgets a session; an unknown one is fine. Raises SessionConflict while it is leased."""
        ...


class BaseLease(ABC):
    """What all leases have in common; a store adds `read`, `commit` and `release`."""

    @abstractmethod
    async def read(self) -> SessionSnapshot: ...

    @abstractmethod
    async def commit(self, snapshot: SessionSnapshot) -> SessionSnapshot: ...

    @abstractmethod
    async def release(self) -> None: ...

    async def import_legacy(
        self, messages: Iterable[Message | Mapping[str, Any]]
    ) -> SessionSnapshot:
        if (await self.read()).revision:
            raise session_exists()
        return await self.commit(import_legacy(messages))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.release()


def in_use() -> SessionConflict:
    return SessionConflict("This session is in use.")


def session_exists() -> SessionConflict:
    return SessionConflict(
        "There is a session of this id already.",
        hint="Take another id. Nothing was changed.",
        code="session_exists",
    )
