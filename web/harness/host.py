"""`HarnessRuntime`: runs a driver under the lease of a session and commits what it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, TypeVar

from web.harness.resources import ResourceLease, ResourcePool
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.store import SessionLease, SessionStore
from web.harness.tools.finishing import see_through
from web.harness.tools.resource import GetResource, no_resources
from web.harness.values.errors import LeaseLost
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import Message

log = logging.getLogger(__name__)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Commit = Callable[[SessionLease, SessionSnapshot], Awaitable[SessionSnapshot]]
"""Commits a snapshot in place of `SessionLease.commit`, and something else along with it."""


@dataclass(slots=True)
class ExecutionServices:
    """What a driver works on: a clone of the session. What it leaves here is committed.

    `history`, `conversations` and `state` may be changed or replaced. `replayable` is to be set
    False by a driver whose run failed or was cancelled. `revision` and `was_replayable` say what
    the session was before. `resource` lends live things (see `ResourceLease.resource`), to tools
    too where an agent is given it: `Agent(..., state=services.state, resource=services.resource)`.
    A driver whose run is written down elsewhere and goes on later sets `commits` False: the session
    stays as it was. `commit` is how the snapshot is committed, the lease's own where it is None.
    """

    identity: HarnessIdentity
    session_id: str
    history: list[Message]
    conversations: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    replayable: bool = True
    revision: int = 0
    was_replayable: bool = True
    resource: GetResource = no_resources
    commits: bool = True
    commit: Commit | None = None


class Driver(Protocol[T_co]):
    """What runs on a session, such as a function that has an agent do one turn."""

    def __call__(self, services: ExecutionServices, /) -> Awaitable[T_co]: ...


class HarnessRuntime:
    """Ties a session store and a pool of resources to the runs of an application.

    `sessions` gives settled sessions to whoever acquires them, under the same exclusive contract
    as runs; `resources.close_session` ends what a session holds open. Both stay their owner's. A
    pool that is not handed in is made here, and closed by `aclose` or at the end of the block, once
    the runs have ended.
    """

    def __init__(self, sessions: SessionStore, resources: ResourcePool | None = None) -> None:
        self.sessions = sessions
        self.resources = resources if resources is not None else ResourcePool()
        self._owns_resources = resources is None

    async def run(
        self, identity: HarnessIdentity, session_id: str, driver: Driver[T], *, wait: float = 0
    ) -> T:
        """Acquires the lease, runs the driver, commits what it left and releases.

        A driver that raises or is cancelled leaves what it has as not replayable; what it raised is
        raised, and a commit that fails besides is logged and noted on it. What was lent for the run
        is disposed of before the session is free again. Commit and release are finished however
        often the caller is cancelled. Where the state is no JSON, NotSerialisable is raised, and
        the rest is committed beside the state of before. A driver whose lease is lost is cancelled.
        Raises LeaseLost then, SessionConflict when another holder has the session for longer than
        `wait` seconds, and what the store raises.
        """
        lease = await self.sessions.acquire(identity, session_id, wait=wait)
        try:
            async with self.resources.lease(identity, session_id) as resources:
                services = _services(identity, session_id, await lease.read(), resources)
                try:
                    async with _while_held(lease):
                        result = await driver(services)
                except BaseException as error:
                    await _commit_unfinished(lease, services, error)
                    raise
                await see_through(_commit(lease, services))
                return result
        finally:
            await see_through(_release(lease))

    async def aclose(self) -> list[str]:
        """Closes the pool where it was made here; returns the ids whose disposal failed."""
        return await self.resources.aclose() if self._owns_resources else []

    async def __aenter__(self) -> HarnessRuntime:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def _while_held(lease: SessionLease) -> AsyncIterator[None]:
    """Cancels what is done here when the lease is lost, if it can tell, and raises LeaseLost."""
    lost = getattr(lease, "lost", None)
    running = asyncio.current_task()
    if not isinstance(lost, asyncio.Event) or running is None:
        yield
        return
    struck = False

    async def watch() -> None:
        nonlocal struck
        await lost.wait()
        struck = True
        running.cancel()

    before = running.cancelling()
    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError as error:
        if not struck or running.uncancel() > before:
            raise
        raise LeaseLost(
            "This server stood still for too long, and others may go on with this chat.",
            hint="What was written until then is kept. Send the message again if it has no answer.",
        ) from error
    finally:
        watching.cancel()


def _services(
    identity: HarnessIdentity, session_id: str, settled: SessionSnapshot, resources: ResourceLease
) -> ExecutionServices:
    return ExecutionServices(
        identity,
        session_id,
        list(settled.history),
        dict(settled.conversations),
        settled.state,
        revision=settled.revision,
        was_replayable=settled.replayable,
        resource=resources.resource,
    )


async def _commit_unfinished(
    lease: SessionLease, services: ExecutionServices, error: BaseException
) -> None:
    """Commits what a driver that raised `error` has; nothing that fails takes its place."""
    services.replayable = False
    try:
        await see_through(_commit(lease, services))
    except asyncio.CancelledError:
        raise
    except Exception as failed:
        log.exception("What a broken run left could not be committed")
        error.add_note(f"What the run left could not be committed: {failed}")


async def _release(lease: SessionLease) -> None:
    try:
        await lease.release()
    except Exception:
        # What was committed stays so; where a lease expires, the session is free again then.
        log.exception("The lease of a session could not be released")


async def _commit(lease: SessionLease, services: ExecutionServices) -> None:
    if not services.commits:
        return
    left = SessionSnapshot(
        tuple(services.history),
        services.conversations,
        services.state,
        replayable=services.replayable,
    )
    commit = services.commit or _plainly
    try:
        await commit(lease, left)
    except NotSerialisable as error:
        # A tool that kept what no store can keep must not cost the conversation.
        settled = await lease.read()
        await commit(lease, replace(left, state=settled.state, replayable=False))
        error.hint = "The messages were kept, and the state as it was before the run."
        raise


async def _plainly(lease: SessionLease, snapshot: SessionSnapshot) -> SessionSnapshot:
    return await lease.commit(snapshot)
