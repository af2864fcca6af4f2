"""Makes processes that perform a durable run: `python -m tests.support.durable_child`.

It reads one JSON line for each, `Plan` with the address of a socket, and forks: all is imported
already. A child connects to the socket and says

| message | when |
|---|---|
| `("hello", pid)` | first |
| `("at", name)` | at a boundary, if it is watched; it goes on when it gets anything |
| `("shown", number, body)` | an event was read: after `Plan.after`, each once |
| `("asked", name, type)` | a question is answered next |
| `("result", status, text, reason)` | the run has ended |
| `("failed", code)` | it could not begin or go on |
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import traceback
from contextlib import aclosing, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Literal

from tests.support.durable_run import durable_agent
from web.harness.agent.agent import Agent
from web.harness.loop.state import RunState
from web.harness.runtime.addresses import is_temporal, store_of_backend
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.backend import Backend
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.questions import Question
from web.harness.runtime.sql import SqlBackend
from web.harness.sessions.journal import Execution, RunJournal, Step
from web.harness.sessions.opening import Stores, open_database
from web.harness.sessions.sql.database import Database, T, Work
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.executions import SqlExecutions
from web.harness.sessions.sql.records import SqlBlobs, SqlRecords
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.errors import DecisionRefused, HarnessError
from web.harness.values.events import (
    ApprovalRequired,
    InputRequired,
    RecoveryRequired,
    Resolution,
    RunResult,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a child does: begins a run or goes on with one, and how it answers.

    With an address of Temporal it performs the run itself, or leaves that to `workers` that are
    `elsewhere`: children that `work`.
    """

    socket: str
    address: str
    ran: str
    replay: ReplayPolicy
    do: Literal["run", "resume", "work"]
    watched: bool = False
    resolve: Resolution = "retry"
    lease_seconds: float = 1.0
    after: int = 0
    answers: bool = True
    wait: float = 10
    workers: Literal["here", "elsewhere"] = "here"


class WatchedDatabase:
    """A `Database` that is at a boundary after each transaction that wrote."""

    def __init__(self, inner: Database, child: Child) -> None:
        self._inner = inner
        self._child = child

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, work: Work[T]) -> T:
        result = await self._inner.write(work)
        self._child.at("committed")
        return result

    async def write_at_once(self, work: Work[T]) -> T:
        result = await self._inner.write_at_once(work)
        self._child.at("committed")
        return result


class WatchedExecutions(SqlExecutions):
    """Whose journals are at a boundary with each step that is handed over."""

    child: Child

    async def begin(self, run_id: str) -> tuple[Execution, Any]:
        execution, journal = await super().begin(run_id)
        return execution, WatchedJournal(journal, self.child)


class WatchedJournal:
    def __init__(self, inner: RunJournal, child: Child) -> None:
        self.settled = inner.settled
        self._inner = inner
        self._child = child

    def write(self, step: Step, state: RunState) -> None:
        self._inner.write(step, state)
        self._child.at(step.kind)


class Child:
    def __init__(self, plan: Plan, connection: Connection) -> None:
        self._plan = plan
        self._connection = connection
        self._answered: set[str] = set()

    def say(self, *message: Any) -> None:
        self._connection.send(message)

    def at(self, name: str) -> None:
        """Stands still, with the whole process, until it is let go on."""
        if self._plan.watched:
            self.say("at", name)
            self._connection.recv()

    async def stores(self) -> Stores:
        plan = self._plan
        opened = await open_database(store_of_backend(plan.address))
        database: Any = WatchedDatabase(opened, self)
        events = SqlEventLog(database, time.time)
        executions = WatchedExecutions(database, events)
        executions.child = self
        return Stores(
            SqlSessionStore(database, lease_seconds=plan.lease_seconds),
            events,
            SqlRecords(database),
            SqlBlobs(database),
            database,
            executions,
        )

    def backend(self, stores: Stores) -> Backend:
        plan = self._plan
        if not is_temporal(plan.address):
            return SqlBackend(stores)
        # It loads a library of 40 MB, which the tests of other backends need not wait for.
        from tests.support.watched_temporal import WatchedTemporal

        return WatchedTemporal(plan.address, stores, self.at, plan.workers)

    def agent(self) -> Agent:
        return durable_agent(Path(self._plan.ran), self._plan.replay, self.at)

    async def work(self) -> None:
        """Performs what is left to workers, until it is killed."""
        from tests.support.temporal_runs import crew_of
        from tests.support.watched_temporal import WatchedTemporal

        backend = self.backend(await self.stores())
        assert isinstance(backend, WatchedTemporal)
        async with backend.working(crew_of(backend, self.agent), grace=0):
            await asyncio.Event().wait()

    async def perform(self) -> None:
        plan = self._plan
        stores = await self.stores()
        runtime = AgentRuntime(self.agent(), backend=self.backend(stores))
        try:
            async with runtime:
                handle = await (
                    runtime.submit("Do it.", request_id="r")
                    if plan.do == "run"
                    else runtime.resume(wait=plan.wait)
                )
                info = await runtime.status()
                for question in info.pending if info is not None else ():
                    await self._answer(runtime, question)
                await self._follow(runtime, handle)
        except HarnessError as error:
            self.say("failed", error.code)
        finally:
            await stores.aclose()

    async def _follow(self, runtime: AgentRuntime, handle: RunHandle) -> None:
        async with aclosing(handle.stream(self._plan.after)) as events:
            async for event in events:
                self.say("shown", event.number, event.body)
                match event.body:
                    case ApprovalRequired() | InputRequired() | RecoveryRequired() as question:
                        info = await runtime.status()
                        if info is not None and question in info.pending:
                            await self._answer(runtime, question)
                    case RunResult():
                        break
        result = await handle.result()
        self.say("result", result.status, result.text, result.reason)

    async def _answer(self, runtime: AgentRuntime, question: Question) -> None:
        if question.key in self._answered or not self._plan.answers:
            return
        self._answered.add(question.key)
        # It may be over: taken back with an attempt that died, or the run was given up.
        with suppress(DecisionRefused):
            match question:
                case ApprovalRequired():
                    await runtime.approve(question)
                case RecoveryRequired():
                    await runtime.resolve_tool(question, self._plan.resolve, "told by a person")
                case InputRequired():
                    raise AssertionError("nobody asks for input here")
            self.say("asked", question.name, question.type)


async def _lives(child: Child, plan: Plan, connection: Connection) -> None:
    # What a test says is heard at a boundary. All that can be heard beside that is its end.
    asyncio.get_running_loop().add_reader(connection.fileno(), os._exit, 1)
    await (child.work() if plan.do == "work" else child.perform())


def perform(plan: Plan) -> None:
    with Client(plan.socket, "AF_UNIX") as connection:
        connection.send(("hello", os.getpid()))
        asyncio.run(_lives(Child(plan, connection), plan, connection))


def main() -> None:
    # What would be imported by each child, when it opens its database.
    for name in ("aiosqlite", "sqlalchemy.dialects.sqlite.aiosqlite", "asyncpg"):
        import_module(name)
    for kind in ("sqlite", "postgres"):
        import_module(f"web.harness.sessions.sql.{kind}")
    # Children that end are nobody's to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    # Without a buffer, which a child would have a copy of.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as lines:
        while line := lines.readline():
            if b'"temporal:' in line:
                import_module("tests.support.watched_temporal")
            if os.fork() == 0:
                status = 1
                try:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    perform(Plan(**json.loads(line)))
                    status = 0
                except (EOFError, BrokenPipeError):
                    pass  # The test is gone.
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)


if __name__ == "__main__":
    main()
