"""`HarnessRuntime`: runs a driver under the lease of a session and commits what it leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionLease, SessionStore
from web.harness.values.messages import Message

T = TypeVar("T")


@dataclass(slots=True)
class ExecutionServices:
    """What a driver works on: a clone of the session. What it leaves here is committed.

    `replayable` is to be set False by a driver whose run failed or was cancelled.
    """

    identity: HarnessIdentity
    session_id: str
    history: list[Message]
    conversations: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    replayable: bool = True


Driver = Callable[[ExecutionServices], Awaitable[T]]


class HarnessRuntime:
    """Ties a session store to the runs of an application. The store stays its owner's."""

    def __init__(self, sessions: SessionStore) -> None:
        self.sessions = sessions

    async def run(
        self, identity: HarnessIdentity, session_id: str, driver: Driver[T], *, wait: float = 0
    ) -> T:
        """Acquires the lease, runs the driver, commits and releases; also when it fails.

        Raises SessionConflict when another holder has the session for longer than `wait` seconds.
        """
        async with await self.sessions.acquire(identity, session_id, wait=wait) as lease:
            snapshot = await lease.read()
            services = ExecutionServices(
                identity,
                session_id,
                list(snapshot.history),
                dict(snapshot.conversations),
                snapshot.state,
            )
            try:
                result = await driver(services)
            except BaseException:
                services.replayable = False
                await _commit(lease, services)
                raise
            await _commit(lease, services)
            return result


async def _commit(lease: SessionLease, services: ExecutionServices) -> None:
    await lease.commit(
        SessionSnapshot(
            tuple(services.history),
            services.conversations,
            services.state,
            replayable=services.replayable,
        )
    )
