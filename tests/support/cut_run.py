"""What must hold of a durable run that was cut off and gone on with, checked event by event."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.support.durable_process import DurableChild, DurableProcesses
from tests.support.durable_run import ANSWER, ran_in
from tests.support.stores import SqlPlace, new_place
from tests.support.temporal import new_queue, temporal_server
from web.harness.runtime.backend import executions_of
from web.harness.sessions.deltas import join_deltas
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import Stores
from web.harness.tools.tool import ReplayPolicy
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    Event,
    RecoveryAnswered,
    RecoveryRequired,
    Resolution,
    TextDelta,
    ToolCallDelta,
)
from web.harness.values.messages import Message

TOOLS = ("look-left", "look-right", "save")

LEASE_SECONDS = 60.0
"""More than any process here stands still; of one that was killed it is made to run out."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was there right after a kill. `settled` are the tools whose result was committed."""

    run_id: str
    status: str
    settled: frozenset[str]


@asynccontextmanager
async def cut_run(
    processes: DurableProcesses,
    kind: str,
    folder: Path,
    replay: ReplayPolicy,
    resolve: Resolution = "retry",
) -> AsyncIterator[CutRun]:
    """A run that has not begun, in an empty place. `kind` is a database, or `temporal`."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    place = await new_place("sqlite" if kind == "temporal" else kind, folder)
    assert isinstance(place, SqlPlace)
    address = ""
    if kind == "temporal":
        told = f"events={quote(place.address, safe='')}&queue={new_queue()}"
        address = f"temporal://{temporal_server().address}/default?{told}"
    try:
        yield CutRun(processes, place, folder / "ran", replay, resolve, address=address)
    finally:
        await place.aclose()


class CutRun:
    """One run of `durable_run` in a place of its own, under one replay policy.

    `address` is that of the backend, where it is another than the database's.
    """

    def __init__(
        self,
        processes: DurableProcesses,
        place: SqlPlace,
        ran: Path,
        replay: ReplayPolicy,
        resolve: Resolution = "retry",
        *,
        address: str = "",
    ) -> None:
        self.place = place
        self._address = address or place.address
        self.replay = replay
        self._processes = processes
        self._ran = ran
        self._resolve = resolve
        self._shown: list[Event] = []
        self._settled: dict[str, int] = {}

    async def begin(self) -> DurableChild:
        return await self.start("run", watched=True)

    async def killed(self, child: DurableChild) -> Found:
        """Kills a child that performs the run, where it stands; what was there then."""
        found = await self.worker_killed(child)
        self._shown += child.events
        await self.place.let_leases_run_out()
        return found

    async def worker_killed(self, worker: DurableChild) -> Found:
        """The same of a worker, which has no session."""
        await worker.kill()
        found = await self._found(await self.place.backend())
        for name in found.settled - self._settled.keys():
            self._settled[name] = Counter(each for each, _ in ran_in(self._ran))[name]
        return found

    async def next(self, found: Found, *, watched: bool = False) -> DurableChild:
        """A fresh process that goes on, or begins what had not begun."""
        do = "run" if found.status in ("", "submitted", "ended") else "resume"
        after = self._shown[-1].number if self._shown else 0
        return await self.start(do, after=after, watched=watched)

    async def ends_well(self, found: Found, last: DurableChild) -> None:
        """Lets the last process go on to the end; all that must hold of the run holds."""
        await last.ended()
        assert last.failed == "", last.failed
        self._shown += last.events
        stores = await self.place.backend()
        self._answer_is_right(last)
        self._tools_ran_as_often_as_they_may()
        await _every_event_was_read_once(stores, found.run_id, self._shown)
        await self._shown_is_what_was_kept(stores, self._shown)
        _asked_once(self._shown)
        if found.run_id:
            execution = await executions_of(stores).find(found.run_id)
            assert execution is not None
            assert execution.status == "ended"

    async def goes_on(self, first: DurableChild) -> None:
        """Kills the child where it stands; another one brings the run to its end."""
        found = await self.killed(first)
        await self.ends_well(found, await self.next(found))

    async def start(self, do: str, **more: object) -> DurableChild:
        """A child of this run; see `Plan`."""
        return await self._processes.start(
            address=self._address,
            ran=str(self._ran),
            replay=self.replay,
            resolve=self._resolve,
            lease_seconds=LEASE_SECONDS,
            do=do,
            **more,
        )

    async def _found(self, stores: Stores) -> Found:
        rows = await self.place.run("SELECT run_id, status FROM harness_executions")
        if not rows:
            return Found("", "", frozenset())
        [(run_id, status)] = rows
        names = {f"{run_id}-1-0": TOOLS[0], f"{run_id}-1-1": TOOLS[1], f"{run_id}-3-0": TOOLS[2]}
        steps = await executions_of(stores).steps(run_id)
        calls = [
            call for each in steps if each.step.kind == "call_settled" for call in each.step.calls
        ]
        return Found(run_id, status, frozenset(names[call.use.id] for call in calls))

    @property
    def _uncertain(self) -> list[str]:
        return [
            each.body.call_id for each in self._shown if isinstance(each.body, RecoveryRequired)
        ]

    def _answer_is_right(self, last: DurableChild) -> None:
        assert last.result is not None
        status, text, _ = last.result
        uncertain = self._uncertain
        if not uncertain or self._resolve == "retry":
            assert (status, text) == ("completed", ANSWER)
        elif self._resolve == "result":
            assert status == "completed"
            assert text.count("told by a person") == len(set(uncertain))
        else:
            assert status == "cancelled"
        assert not uncertain or self.replay == "manual"

    def _tools_ran_as_often_as_they_may(self) -> None:
        given_up = bool(self._uncertain) and self._resolve == "abort"
        retried = Counter(
            each.body.call_id
            for each in self._shown
            if isinstance(each.body, RecoveryAnswered) and each.body.how == "retry"
        )
        runs = ran_in(self._ran)
        for name in TOOLS:
            keys = [key for each, key in runs if each == name]
            # An idempotent one is repeated with the same key, as all are.
            assert len(set(keys)) <= 1
            if self.replay == "manual":
                # Never again by itself: only where a person says so.
                assert len(keys) <= 1 + (retried[keys[0]] if keys else 0)
            if not (given_up or (self._uncertain and self._resolve == "result")):
                assert keys
        # What had its result was not run again.
        counts = Counter(name for name, _ in runs)
        assert {name: counts[name] for name in self._settled} == self._settled

    async def _shown_is_what_was_kept(self, stores: Stores, shown: Sequence[Event]) -> None:
        """What a dead attempt had shown was taken back, and nothing is there twice."""
        async with await stores.sessions.acquire(LOCAL_IDENTITY, "s", wait=10) as lease:
            kept = await lease.read()
        assert kept.revision == 1
        answers = {each.id: each.text for each in kept.history if each.role == "assistant"}
        assert texts_of(shown) == {key: text for key, text in answers.items() if text}
        assert _follow_each_other(kept.history)


def texts_of(events: Sequence[Event]) -> dict[str, str]:
    """What a person sees of each message in the end."""
    texts: dict[str, str] = {}
    for event in events:
        match event.body:
            case TextDelta(text, message_id):
                texts[message_id] = texts.get(message_id, "") + text
            case AttemptReset(message_id):
                texts.pop(message_id, None)
    return texts


async def _every_event_was_read_once(stores: Stores, run_id: str, shown: list[Event]) -> None:
    before = 0
    for event in shown:
        # Of a run that has ended the deltas are joined, under the number of the last one: a reader
        # that is behind then gets what it has not read as one.
        is_joined = isinstance(event.body, TextDelta | ToolCallDelta) and event.number > before
        assert is_joined or event.number == before + 1
        before = event.number
    if run_id:
        kept = (await stores.events.read(run_id, limit=10_000)).events
        told = [(event.number, event.body) for event in join_deltas(shown)]
        assert told == [(event.number, event.body) for event in join_deltas(kept)]


def _asked_once(shown: Sequence[Event]) -> None:
    """The approval: unless its whole message was taken back, it was put once."""
    asked: list[ApprovalRequired] = []
    for event in shown:
        if isinstance(event.body, ApprovalRequired):
            asked.append(event.body)
        if isinstance(event.body, AttemptReset):
            asked = [each for each in asked if each.message_id != event.body.message_id]
    assert len(asked) <= 1


def _follow_each_other(history: Sequence[Message]) -> bool:
    parents = [None, *(message.id for message in history)]
    return all(
        message.parent_id == parent for message, parent in zip(history, parents, strict=False)
    )
