"""A PostgreSQL server that is cut off in a commit: what was asked of a journal is done once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support.postgres import empty_database, give_back
from tests.support.postgres_proxy import Cut, PostgresProxy
from tests.support.steps import ANN, message, runs_of, state, submission
from tests.support.stores import on
from web.harness.sessions.journal import GivenAnswer, Step
from web.harness.sessions.opening import Stores
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.answer_rows import ANSWERS, insert_answer
from web.harness.sessions.sql.database import Transaction
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.executions import SqlExecutions
from web.harness.sessions.sql.postgres import open_postgres
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import TextDelta

pytestmark = pytest.mark.anyio


@pytest.fixture
async def address() -> AsyncIterator[str]:
    address = await empty_database()
    yield address
    await give_back(address)


@pytest.mark.parametrize("cut", ["before commit", "after commit"])
async def test_all_that_a_run_writes_is_written_once_whatever_is_cut_off(
    address: str, cut: Cut
) -> None:
    async with PostgresProxy(address) as proxy:
        database = await open_postgres(proxy.address, pauses=(0.0, 0.05, 0.1))
        log = SqlEventLog(database, lambda: 1.0)
        runs = SqlExecutions(database, log)

        async def cut_off(act: Callable[[], Awaitable[object]]) -> None:
            before, proxy.cut = proxy.cuts, cut
            await act()
            assert proxy.cuts == before + 1

        await cut_off(lambda: runs.submit(submission()))
        await cut_off(lambda: runs.begin("r"))
        execution, journal = await runs.begin("r")
        log.append("r", [TextDelta("a", "m"), TextDelta("b", "m")])
        journal.write(Step("begun", messages=(message("u"),)), state(1))
        await cut_off(journal.settled)
        journal.write(Step("model_call"), state(2))
        await cut_off(journal.settled)
        await cut_off(lambda: runs.answer("r", GivenAnswer("decision", "k", {"decision": "allow"})))
        with pytest.raises(DecisionRefused):
            await runs.answer("r", GivenAnswer("decision", "k", {"decision": "allow"}))
        await cut_off(lambda: runs.set_status("r", "paused", execution.fence))
        found = await runs.find("r")
        assert found is not None
        assert (found.steps, found.state, found.status) == (2, state(2), "paused")
        assert [each.cursor for each in await runs.steps("r")] == [2, 2]
        assert [each.number for each in (await log.read("r")).events] == [1, 2]
        assert await runs.answers("r") == [GivenAnswer("decision", "k", {"decision": "allow"})]
        async with await SqlSessionStore(database).acquire(ANN, "s") as lease:
            snapshot = SessionSnapshot((message("u"),))
            await cut_off(lambda: runs.end_with(lease, snapshot, "r", execution.fence, "completed"))
            assert (await lease.read()).revision == 1
        assert await runs.unfinished() == []
        await log.aclose()
        await database.aclose()


@on("sqlite")
async def test_what_is_found_written_when_it_is_tried_again_is_told_here_all_the_same(
    here: Stores,
) -> None:
    database, runs = here.database, runs_of(here)
    assert database is not None
    await runs.submit(submission())
    execution, _ = await runs.begin("r")
    told: list[str | None] = []
    stop = database.signals.listen(ANSWERS, told.append)

    async def answer(transaction: Transaction) -> None:
        given = GivenAnswer("cancel", "cancel")
        assert await insert_answer(transaction, "r", given, "{}", "token")

    acts: tuple[Callable[[], Awaitable[None]], ...] = (
        lambda: database.write_at_once(answer),
        lambda: runs.end("r", execution.fence, "completed"),
    )
    for act in acts:
        for _ in range(2):
            told.clear()
            await act()
            assert "r" in told
    stop()
