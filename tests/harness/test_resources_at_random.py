"""Runs, pages, cancellations, failures and closings in any order: nothing leaks, and nothing is
disposed of twice or while it is in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.resources import ResourceLease, ResourcePool
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.tools.resource import GetResource, Ownership, Resource, Scope, no_resources
from web.harness.values.errors import ConfigurationError, LeaseLost, SessionConflict

ANN, BOB = HarnessIdentity("here", "ann"), HarnessIdentity("here", "bob")
SESSIONS = ((ANN, "s"), (BOB, "s"))
Session = tuple[HarnessIdentity, str]


@dataclass(eq=False)
class Thing:
    """Something that was opened, and how its end goes."""

    session: Session
    id: str
    scope: Scope
    ownership: Ownership
    user: User
    ending: asyncio.Future[bool]
    disposals: int = 0
    failed: bool = False
    is_early: bool = False
    later: list[Thing] = field(default_factory=list)
    """What was made after it and goes before it."""

    async def dispose(self) -> None:
        self.disposals += 1
        self.is_early = any(thing.disposals == 0 for thing in self.later)
        if not await self.ending:
            self.failed = True
            raise OSError("it does not let go")

    def is_beside(self, other: Thing) -> bool:
        """Whether both end together."""
        if self.disposals or self.scope != other.scope:
            return False
        if self.ownership != "runtime" or other.ownership != "runtime":
            return False
        if self.scope == "session":
            return self.session == other.session
        return self.scope == "run" and self.user is other.user and not self.user.has_ended


@dataclass(eq=False)
class User:
    """A run or a page, as the test knows it."""

    session: Session
    resource: GetResource
    lease: ResourceLease | None = None
    verdict: asyncio.Future[bool] | None = None
    run: asyncio.Task[Any] | None = None
    has_ended: bool = False
    """It was told to end, or has."""
    ending: asyncio.Task[Any] | None = None
    things: set[Thing] = field(default_factory=set)


@dataclass(eq=False)
class Asking:
    """One request for a resource; `verdict` is of its initialiser, if that was called."""

    user: User
    id: str
    scope: Scope
    ownership: Ownership
    verdict: asyncio.Future[bool]
    task: asyncio.Task[Resource[Thing]] | None = None
    is_initialising: bool = False


class Inline(ThreadPoolExecutor):
    """Does at once what would be done in a thread, so that a run is the same each time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_running_or_notify_cancel()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class Resources(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(Inline())
        self.pool = ResourcePool(dispose_seconds=3600)
        self.store = InMemorySessionStore()
        self.runtime = HarnessRuntime(sessions=self.store, resources=self.pool)
        self.users: list[User] = []
        self.askings: list[Asking] = []
        self.things: list[Thing] = []
        self.closings: list[tuple[Session, asyncio.Task[list[str]], list[Thing]]] = []
        self.commits: dict[Session, list[bool]] = {session: [] for session in SESSIONS}

    # What may happen. Few rules of many ways: hypothesis leaves some out of each attempt.

    @initialize()
    def begin(self) -> None:
        self.begin_a_run(SESSIONS[0])
        self.open_a_page(SESSIONS[0])

    @rule(session=st.sampled_from(SESSIONS), is_run=st.booleans())
    def begin_another(self, session: Session, is_run: bool) -> None:
        (self.begin_a_run if is_run else self.open_a_page)(session)

    @precondition(lambda self: self.users)
    @rule(
        data=st.data(),
        id=st.sampled_from("xy"),
        scope=st.sampled_from(("run", "session", "session", "session", "host")),
        ownership=st.sampled_from(("runtime", "runtime", "runtime", "host")),
        at_once=st.sampled_from((None, None, True, True, True, False)),
        late=st.sampled_from((False, False, False, False, False, True)),
    )
    def ask(
        self,
        data: st.DataObject,
        id: str,
        scope: Scope,
        ownership: Ownership,
        at_once: bool | None,
        late: bool,
    ) -> None:
        active = [user for user in self.users if not user.has_ended]
        user = data.draw(st.sampled_from(self.users if late or not active else active))
        asking = Asking(user, id, scope, ownership, self.loop.create_future())
        if at_once is not None:
            asking.verdict.set_result(at_once)
        asking.task = self.start(user.resource(id, scope, lambda: self.initialise(asking)))
        self.askings.append(asking)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), works=st.sampled_from((True, True, False)))
    def initialising_or_disposing_ends(self, data: st.DataObject, works: bool) -> None:
        data.draw(st.sampled_from(self.waiting())).set_result(works)

    @precondition(lambda self: any(not user.has_ended for user in self.users))
    @rule(data=st.data(), how=st.sampled_from(("well", "badly", "cancelled")))
    def end_a_run_or_page(self, data: st.DataObject, how: str) -> None:
        user = data.draw(st.sampled_from([each for each in self.users if not each.has_ended]))
        user.has_ended = True
        if user.lease is not None:
            user.ending = self.start(user.lease.release())
            return
        assert user.verdict is not None
        assert user.run is not None
        if how == "cancelled":
            user.run.cancel()
        else:
            user.verdict.set_result(how == "well")
        user.ending = user.run
        self.commits[user.session].append(how == "well")

    @precondition(lambda self: self.cancellable())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.cancellable())).cancel()

    @rule(session=st.sampled_from(SESSIONS))
    def close_session(self, session: Session) -> None:
        busy = self.is_busy(session)
        kept = [thing for thing in self.kept(session) if thing.disposals == 0]
        closing = self.start(self.pool.close_session(*session))
        self.turn()
        if busy:
            assert isinstance(closing.exception(), SessionConflict)
        else:
            self.closings.append((session, closing, kept))

    @precondition(lambda self: any(not user.has_ended for user in self.users))
    @rule(session=st.sampled_from(SESSIONS))
    def end_all_and_close_session(self, session: Session) -> None:
        for asking in self.pending():
            if asking.user.session == session and asking.task is not None:
                asking.task.cancel()
        for user in self.active(session):
            self.end(user)
        self.turn()
        self.close_session(session)

    # What must hold.

    @invariant()
    def all_is_well(self) -> None:
        self.turn()
        self.take_answers()
        for thing in self.things:
            assert thing.disposals <= 1, "disposed of twice"
            assert not thing.is_early, "not in reverse order"
            if thing.disposals:
                assert thing.ownership == "runtime", "the host's was disposed of"
                assert not any(thing in user.things for user in self.active(thing.session)), (
                    "in use"
                )
        for session in SESSIONS:
            for id in "xy":
                alive = [
                    thing
                    for thing in self.kept(session)
                    if thing.id == id and not (thing.ending.done() and thing.disposals)
                ]
                assert len([each for each in alive if each.ownership == "runtime"]) <= 1
                busy = [
                    each
                    for each in self.initialising()
                    if (each.user.session, each.id, each.scope) == (session, id, "session")
                ]
                assert len(busy) <= 1, "initialised twice at a time"
        for _, closing, kept in self.closings:
            if closing.done() and not closing.cancelled():
                failed = [thing.id for thing in reversed(kept) if thing.failed]
                assert closing.result() == failed or not kept

    def teardown(self) -> None:
        try:
            self.end_everything()
            made = [thing for thing in self.things if thing.ownership == "runtime"]
            assert [thing.disposals for thing in made] == [1] * len(made), "something leaked"
            assert len(self.pool) == 0
            for session in SESSIONS:
                self.check_commits(session)
        finally:
            self.loop.close()

    def end_everything(self) -> None:
        for asking in self.askings:
            assert asking.task is not None
            asking.task.cancel()
        for user in self.users:
            if not user.has_ended:
                self.end(user)
        last = self.start(self.pool.aclose())
        for _ in range(10 + 3 * (len(self.things) + len(self.users))):
            self.turn()
            for thing in self.disposing():
                thing.ending.set_result(True)
        self.turn()
        assert last.done(), "something is waited for"
        self.take_answers()
        for user in self.users:
            if user.run is not None and not user.run.cancelled():
                assert isinstance(user.run.exception(), ValueError | None)

    def check_commits(self, session: Session) -> None:
        async def settled() -> tuple[int, bool]:
            async with await self.store.acquire(*session) as lease:
                snapshot = await lease.read()
                return snapshot.revision, snapshot.replayable

        commits = self.commits[session]
        revision, replayable = self.loop.run_until_complete(settled())
        assert revision == len(commits)
        assert replayable == (commits[-1] if commits else True)

    # What the test knows.

    def begin_a_run(self, session: Session) -> None:
        async def driver(services: ExecutionServices) -> None:
            user.resource = services.resource
            assert user.verdict is not None
            if not await user.verdict:
                raise ValueError("the run broke")

        taken = any(user.run is not None and not user.run.done() for user in self.of(session))
        user = User(session, no_resources, verdict=self.loop.create_future())
        user.run = self.start(self.runtime.run(*session, driver))
        self.turn()
        if taken:
            assert isinstance(user.run.exception(), SessionConflict)
        else:
            assert not user.run.done()
            self.users.append(user)

    def open_a_page(self, session: Session) -> None:
        lease = self.pool.lease(*session)
        self.users.append(User(session, lease.resource, lease=lease))

    def end(self, user: User) -> None:
        user.has_ended = True
        if user.lease is not None:
            user.ending = self.start(user.lease.release())
        elif user.run is not None:
            user.run.cancel()
            user.ending = user.run
            self.commits[user.session].append(False)

    async def initialise(self, asking: Asking) -> Resource[Thing]:
        asking.is_initialising = True
        try:
            if not await asking.verdict:
                raise OSError("it could not be opened")
        finally:
            asking.is_initialising = False
        thing = Thing(
            *(asking.user.session, asking.id, asking.scope, asking.ownership, asking.user),
            self.loop.create_future(),
        )
        for earlier in self.things:
            if earlier.is_beside(thing):
                earlier.later.append(thing)
        self.things.append(thing)
        return Resource(thing, thing.ownership, thing.dispose)

    def take_answers(self) -> None:
        for asking in list(self.askings):
            assert asking.task is not None
            if not asking.task.done():
                continue
            self.askings.remove(asking)
            if asking.task.cancelled():
                continue
            error = asking.task.exception()
            assert isinstance(error, OSError | LeaseLost | ConfigurationError | None), repr(error)
            if error is None:
                asking.user.things.add(asking.task.result().value)

    def of(self, session: Session) -> list[User]:
        return [user for user in self.users if user.session == session]

    def active(self, session: Session) -> list[User]:
        return [user for user in self.of(session) if not user.has_ended]

    def is_busy(self, session: Session) -> bool:
        return any(
            not user.has_ended or (user.ending is not None and not user.ending.done())
            for user in self.of(session)
        ) or any(asking.user.session == session for asking in self.pending())

    def kept(self, session: Session) -> list[Thing]:
        return [t for t in self.things if t.session == session and t.scope == "session"]

    def pending(self) -> list[Asking]:
        return [each for each in self.askings if each.task is not None and not each.task.done()]

    def initialising(self) -> list[Asking]:
        return [each for each in self.pending() if each.is_initialising and not each.verdict.done()]

    def waiting(self) -> list[asyncio.Future[bool]]:
        initialising = [each.verdict for each in self.initialising()]
        return initialising + [thing.ending for thing in self.disposing()]

    def cancellable(self) -> list[asyncio.Task[Any]]:
        tasks = [each.task for each in self.askings] + [user.ending for user in self.users]
        tasks += [closing for _, closing, _ in self.closings]
        return [task for task in tasks if task is not None and not task.done()]

    def disposing(self) -> list[Thing]:
        return [thing for thing in self.things if thing.disposals and not thing.ending.done()]

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.create_task(work)

    def turn(self) -> None:
        """Lets every task go on until it waits for something."""

        async def turns() -> None:
            for _ in range(25):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())


@pytest.mark.parametrize(
    ("examples", "steps"), [(40, 30), pytest.param(600, 60, marks=pytest.mark.full)]
)
def test_nothing_leaks_and_nothing_is_disposed_of_twice_or_in_use(
    examples: int, steps: int
) -> None:
    run_state_machine_as_test(
        Resources,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )
