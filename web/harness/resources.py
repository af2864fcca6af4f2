"""The pool of live resources: who may use which one, how long, and who ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from web.harness.tools.finishing import see_through
from web.harness.tools.resource import Resource, Scope
from web.harness.values.errors import ConfigurationError, LeaseLost, SessionConflict

log = logging.getLogger(__name__)

T = TypeVar("T")

DISPOSE_SECONDS = 30.0
"""So long one disposal may take until it counts as failed."""
GRACE_SECONDS = 1.0
"""So long one that is stopped may take to end."""


class Owner(Protocol):
    """Whose a session is: a `HarnessIdentity`."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...


class ResourcePool:
    """Resources of many sessions, in one event loop. Those of two identities never meet.

    Whoever uses them holds a lease of the session; several may be held at a time.
    """

    def __init__(self, *, dispose_seconds: float = DISPOSE_SECONDS) -> None:
        self._disposer = _Disposer(dispose_seconds)
        self._sessions: dict[_Key, _Session] = {}
        self._closed = False

    def lease(self, identity: Owner, session_id: str) -> ResourceLease:
        """The right to use resources of a session, until it is released.

        Raises RuntimeError after `aclose`.
        """
        if self._closed:
            raise RuntimeError("This pool of resources is closed.")
        key = _Key(identity.tenant_id, identity.user_id, session_id)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = _Session(_Shelf(self._disposer))
        session.leases += 1
        return ResourceLease(session, self._disposer, lambda: self._tidy(key, session))

    def hold(self, identity: Owner, session_id: str, id: str, resource: Resource[Any]) -> None:
        """Keeps what is live already for a session, as if it had been made in one of its leases.

        Nothing happens in between, so this needs no lease. Raises ConfigurationError for an id that
        is taken, SessionConflict while the session is being closed, RuntimeError after `aclose`;
        the resource then stays the caller's.
        """
        if self._closed:
            raise RuntimeError("This pool of resources is closed.")
        key = _Key(identity.tenant_id, identity.user_id, session_id)
        session = self._sessions.get(key) or _Session(_Shelf(self._disposer))
        if session.closing is not None:
            raise SessionConflict(
                "What this session held open is being closed.", hint="Try again in a moment."
            )
        session.shelf.put(id, _checked(id, resource))
        self._sessions[key] = session

    def ids(self, identity: Owner, session_id: str) -> tuple[str, ...]:
        """What is kept for a session, in the order it was made."""
        session = self._sessions.get(_Key(identity.tenant_id, identity.user_id, session_id))
        return tuple(session.shelf.held) if session is not None else ()

    def __len__(self) -> int:
        """How many sessions use or hold something."""
        return len(self._sessions)

    async def close_session(self, identity: Owner, session_id: str) -> list[str]:
        """Disposes of all that is kept for a session, what was made last first.

        Returns the ids whose disposal failed or took too long, which is logged; nothing is kept
        of them either. Once begun it is finished, also when the caller is cancelled, and whoever
        asks for a resource meanwhile waits for it. A second caller gets the answer of the first.
        Raises SessionConflict while a lease is held or something is being initialised; then
        nothing was disposed of.
        """
        key = _Key(identity.tenant_id, identity.user_id, session_id)
        session = self._sessions.get(key)
        if session is None:
            return []
        if session.is_busy:
            raise SessionConflict(
                "What this session holds open is in use.",
                hint="Close it when its run has ended. Nothing was closed.",
            )
        return await self._close(key, session)

    async def aclose(self) -> list[str]:
        """Closes all sessions side by side, and waits before that for all leases to be released.

        No lease is given from here on: stop the runs first. Returns the ids whose disposal failed.
        """
        self._closed = True
        while busy := [session for session in self._sessions.values() if session.is_busy]:
            await busy[0].wait_for_change()
        closing = [self._close(key, session) for key, session in list(self._sessions.items())]
        return [id for failed in await asyncio.gather(*closing) for id in failed]

    async def _close(self, key: _Key, session: _Session) -> list[str]:
        if (closing := session.closing) is not None:
            await closing.done.wait()
            return list(closing.failed)
        # Set before anybody else can have a turn: what is to be closed is lent to nobody.
        closing = session.closing = _Closing()
        return list(await see_through(self._closed_session(key, session, closing)))

    async def _closed_session(self, key: _Key, session: _Session, closing: _Closing) -> list[str]:
        try:
            await session.shelf.empty(closing.failed)
        finally:
            session.closing = None
            closing.done.set()
            self._tidy(key, session)
        return closing.failed

    def _tidy(self, key: _Key, session: _Session) -> None:
        """Forgets a session that nobody uses and that holds nothing."""
        session.changed.set()
        is_idle = not session.is_busy and not session.shelf.held and session.closing is None
        # A lease that ends late may have an older one than is there by now.
        if is_idle and self._sessions.get(key) is session:
            del self._sessions[key]


class ResourceLease:
    """The use of a session's resources, by one run or one page; made by `ResourcePool.lease`.

    An async context manager that releases at its end.
    """

    def __init__(self, session: _Session, disposer: _Disposer, tidy: Callable[[], None]) -> None:
        self._session = session
        self._disposer = disposer
        self._tidy = tidy
        self._run = _Shelf(disposer)

    async def resource(
        self, id: str, scope: Scope, initialise: Callable[[], Awaitable[Resource[T]]]
    ) -> Resource[T]:
        """The resource of that id, made by `initialise` where there is none; see `GetResource`.

        In the scope `run` it is this lease's own and disposed of at its release, in the scope
        `session` it is kept for all leases of the session until `close_session`. Of those who ask
        at the same time one initialises: all get what it made or raises, and after a failure
        whoever asks next tries anew. If that one is cancelled, the next one takes over. In the
        scope `host` the host is asked each time and has to be the owner. Raises LeaseLost after
        the release.
        """
        self._session.asking += 1
        try:
            resource = await self._found(id, scope, initialise)
            self._check_held()
            return replace(resource, dispose=None)
        finally:
            self._session.asking -= 1
            self._tidy()

    async def release(self) -> list[str]:
        """Disposes of what this lease alone has, what was made last first.

        Returns the ids whose disposal failed, which is logged. Finished also when the caller is
        cancelled. Releasing twice is fine.
        """
        if self._run.is_closed:
            return []
        self._run.is_closed = True
        try:
            return await see_through(self._run.empty([]))
        finally:
            self._session.leases -= 1
            self._tidy()

    async def __aenter__(self) -> ResourceLease:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.release()

    async def _found(
        self, id: str, scope: Scope, initialise: Callable[[], Awaitable[Resource[T]]]
    ) -> Resource[T]:
        match scope:
            case "run":
                return await self._run.get(id, initialise, self._check_held)
            case "session":
                while self._session.closing is not None:
                    await self._session.closing.done.wait()
                return await self._session.shelf.get(id, initialise, self._check_held)
            case "host":
                self._check_held()
                return await self._lent_by_host(id, initialise)
        raise ConfigurationError(
            f"'{scope}' is no scope of resources.", hint="There are run, session and host."
        )

    async def _lent_by_host(
        self, id: str, initialise: Callable[[], Awaitable[Resource[T]]]
    ) -> Resource[T]:
        lent = _checked(id, await initialise())
        if lent.ownership != "host":
            # It was made for this: nobody else would end it.
            await see_through(self._disposer.dispose(id, lent))
            raise ConfigurationError(
                f"The resource '{id}' is asked for in the scope 'host' and is not the host's.",
                hint="Make it where the application starts, and lend it with ownership='host'.",
            )
        return lent

    def _check_held(self) -> None:
        if self._run.is_closed:
            raise LeaseLost(
                "The run that this resource was asked for has ended.", hint="Ask in the next run."
            )


class _Key(NamedTuple):
    tenant_id: str
    user_id: str
    session_id: str


@dataclass(slots=True, eq=False)
class _Closing:
    done: asyncio.Event = field(default_factory=asyncio.Event)
    failed: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Session:
    """What is kept of one session, how many leases it has, and who is asking right now."""

    shelf: _Shelf
    leases: int = 0
    asking: int = 0
    closing: _Closing | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_busy(self) -> bool:
        return self.leases > 0 or self.asking > 0

    async def wait_for_change(self) -> None:
        self.changed.clear()
        await self.changed.wait()


@dataclass(slots=True, eq=False)
class _Making:
    """An initialiser under way, and who awaits it; `error` where it failed."""

    task: asyncio.Task[Any] | None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None


class _Shelf:
    """Resources by id, in the order they were made. A closed one takes no more."""

    def __init__(self, disposer: _Disposer) -> None:
        self.held: dict[str, Resource[Any]] = {}
        self.is_closed = False
        self._making: dict[str, _Making] = {}
        self._disposer = disposer

    async def get(
        self,
        id: str,
        initialise: Callable[[], Awaitable[Resource[T]]],
        check: Callable[[], None],
    ) -> Resource[T]:
        """What is there, or what is being made, or else made now; `check` raises to end that."""
        while True:
            check()
            if id in self.held:
                return self.held[id]
            making = self._making.get(id)
            if making is None:
                return await self._make(id, initialise)
            if making.task is asyncio.current_task():
                raise ConfigurationError(f"Initialising the resource '{id}' asks for itself.")
            await making.done.wait()
            if making.error is not None:
                raise making.error

    def put(self, id: str, resource: Resource[Any]) -> None:
        if id in self.held or id in self._making:
            raise ConfigurationError(f"There is a resource '{id}' in this session already.")
        self.held[id] = resource

    async def empty(self, failed: list[str]) -> list[str]:
        """Disposes of all, the last made first; `failed` is given the ids where that failed."""
        while self.held:
            id, resource = self.held.popitem()
            if not await self._disposer.dispose(id, resource):
                failed.append(id)
        return failed

    async def _make(self, id: str, initialise: Callable[[], Awaitable[Resource[T]]]) -> Resource[T]:
        making = self._making[id] = _Making(asyncio.current_task())
        try:
            made = _checked(id, await initialise())
            # No await from here until it is held: whoever is cancelled now loses nothing.
            if not self.is_closed:
                self.held[id] = made
        except Exception as error:
            making.error = error
            raise
        finally:
            del self._making[id]
            making.done.set()
        if self.is_closed:
            await see_through(self._disposer.dispose(id, made))
        return made


class _Disposer:
    """Ends resources, each within `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left_behind: set[asyncio.Future[Any]] = set()

    async def dispose(self, id: str, resource: Resource[Any]) -> bool:
        """Whether all is well: it is ended, or it is not ours to end. Why not is logged."""
        if resource.ownership != "runtime" or resource.dispose is None:
            return True
        try:
            ending = asyncio.ensure_future(resource.dispose())
        except Exception:
            log.exception("The resource %s could not be disposed of", id)
            return False
        if not (await asyncio.wait((ending,), timeout=self._seconds))[0]:
            ending.cancel()
            # One that does not even take that is left behind: a chat must not stay busy for it.
            self._left_behind.add(ending)
            ending.add_done_callback(self._left_behind.discard)
            await asyncio.wait((ending,), timeout=GRACE_SECONDS)
            log.error("Disposing of the resource %s took over %g seconds", id, self._seconds)
            return False
        if ending.cancelled():
            log.error("Disposing of the resource %s was cancelled from inside", id)
            return False
        if (error := ending.exception()) is not None:
            log.error("The resource %s could not be disposed of", id, exc_info=error)
            return False
        return True


def _checked(id: str, made: Resource[T]) -> Resource[T]:
    if not isinstance(made, Resource):
        raise ConfigurationError(
            f"Initialising the resource '{id}' gave a {type(made).__name__}, and no Resource.",
            hint="Return Resource(value, dispose=...), so that it can be disposed of.",
        )
    return made
