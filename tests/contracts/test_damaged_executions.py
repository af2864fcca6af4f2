"""What is damaged, or large, of one run stands in the way of no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.steps import ANN, begun, runs_of, submission
from tests.support.stores import SqlPlace
from web.harness.sessions.journal import Executions, GivenAnswer
from web.harness.sessions.opening import Stores
from web.harness.values.errors import DecisionRefused, StoreError
from web.harness.values.events import RunResult

pytestmark = pytest.mark.anyio

ALLOW = GivenAnswer("decision", "k", {"decision": "allow"})


@pytest.mark.parametrize(
    ("body", "code"), [("{", "store_corrupt"), ('{"v": 99}', "from_the_future")]
)
async def test_a_message_that_cannot_be_read_hides_no_other_and_can_be_ended(
    place: SqlPlace, here: Stores, runs: Executions, body: str, code: str
) -> None:
    await runs.submit(submission())
    await runs.submit(submission("t", "another request"))
    await place.run(f"UPDATE harness_executions SET body = '{body}' WHERE run_id = 'r'")
    damaged, other = await runs.unfinished(ANN)
    assert other.submission.run_id == "t"
    assert other.unreadable is None
    for each in (damaged, await runs.find("r"), await runs.submit(submission())):
        assert each is not None
        known = each.submission
        assert (known.run_id, known.request_id, known.identity) == ("r", "q", ANN)
        assert (known.session_id, known.text, known.fitting) == ("s", "", {})
        assert isinstance(each.unreadable, StoreError)
        assert each.unreadable.code == code
        assert "ancel" in each.unreadable.hint
    execution, journal = await runs.begin("r")
    here.events.append("r", [RunResult("failed", "")])
    await journal.settled()
    await runs.end("r", execution.fence, "failed")
    assert [each.submission.run_id for each in await runs.unfinished()] == ["t"]


async def test_a_state_that_cannot_be_read_is_told_of(place: SqlPlace, runs: Executions) -> None:
    await begun(runs)
    await place.run("UPDATE harness_executions SET state = '{'")
    (found,) = await runs.unfinished()
    assert found.submission.text == submission().text
    assert found.unreadable is not None
    assert found.state is None


async def test_what_was_attached_is_read_with_one_run_and_not_with_many(runs: Executions) -> None:
    await runs.submit(submission())
    (listed,) = await runs.unfinished()
    assert listed.submission == replace(submission(), attachments=())
    found = await runs.find("r")
    assert found is not None
    assert found.submission == submission()


@pytest.mark.parametrize(
    "damage", ["body = '[tru'", "kind = 'gossip'", """body = '{"decision": "perhaps"}'"""]
)
async def test_a_damaged_answer_can_be_given_again_and_is_heard_of(
    place: SqlPlace, runs: Executions, damage: str
) -> None:
    await begun(runs)
    there = runs_of(await place.backend())
    await runs.answer("r", ALLOW)
    await runs.answer("r", replace(ALLOW, key="other"))
    await place.run(f"UPDATE harness_answers SET {damage} WHERE key = 'k'")
    assert [each.key for each in await runs.answers("r")] == ["other"]
    waiting = asyncio.ensure_future(there.wait_for_answers("r", 1))
    await there.answers("r")
    assert not waiting.done()
    deny = replace(ALLOW, body={"decision": "deny"})
    await runs.answer("r", deny)
    await asyncio.wait_for(waiting, 10)
    # Those who know the first so many of them miss none.
    assert list(await there.answers("r")) == [replace(ALLOW, key="other"), deny]
    with pytest.raises(DecisionRefused):
        await runs.answer("r", ALLOW)


async def test_a_stop_counts_whatever_is_damaged_of_it(place: SqlPlace, runs: Executions) -> None:
    await begun(runs)
    await runs.answer("r", GivenAnswer("cancel", "cancel"))
    await place.run("UPDATE harness_answers SET body = '['")
    assert list(await runs.answers("r")) == [GivenAnswer("cancel", "cancel")]
