"""What a journal keeps comes back equal; each form that was ever written is frozen here."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.steps import PICTURE, STATE, message, round_of_calls, submission
from web.harness.loop.actions import (
    CallSettled,
    CallsStarted,
    CancelRequested,
    Condensed,
    CondenseFailed,
    ContextFull,
    Decided,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    ProposedCall,
    Resolved,
    Resumed,
)
from web.harness.loop.state import CallState, Condensing, Ending, RunState
from web.harness.sessions.journal import CallRecord, Step, StepKind, Submission
from web.harness.sessions.journal_form import (
    state_from_json,
    state_to_json,
    step_from_json,
    step_to_json,
    submission_from_json,
    submission_to_json,
)
from web.harness.sessions.sql.rows import json_row
from web.harness.values.json_form import JsonRefused, NotSerialisable
from web.harness.values.messages import ToolUseBlock
from web.harness.values.usage import Usage

SAMPLE = json.loads((Path(__file__).parent / "frozen" / "journal-1.json").read_text())

ASKING = CallRecord(
    ToolUseBlock("c", "t", {}, "{broken"), "a", "idempotent", "it is denied", granted=True,
    input={"key": "k", "request": {"mode": "form"}, "state": "sealed"},
    asked=("k-1", "k-2"),
)  # fmt: skip

STEPS: list[Step] = [
    Step("begun", messages=(message("u"),)),
    *round_of_calls(1),
    Step(
        "answered",
        ModelAnswered(
            3,
            (ProposedCall("c", "t", "refuse", "k"), ProposedCall("d", "t")),
            "max_tokens",
            Usage(1, 2, 3, 4, 5),
        ),
        calls=(ASKING,),
    ),
    Step("model_failed", ModelFailed("busy", True, 5, 1.5, 0.25, "It is busy.", "Wait.")),
    Step("context_full", ContextFull(9, 8, 7, 6)),
    Step("condensed", Condensed(5, Usage(1), 0.5), replaced=(message("sum"), message("kept"))),
    Step("condensed", CondenseFailed("busy", True, 2.0, 0.5, Usage(output_tokens=1), 0.25)),
    Step("condensed", replaced=()),
    Step("calls_started", CallsStarted(("c", "d"))),
    Step("input_asked", calls=(ASKING,)),
    Step("input_answered", InputGiven("c"), calls=(replace(ASKING, seconds=2.0),)),
    Step("call_settled", CallSettled("c", 7, "digest", Usage(2), 0.75)),
    Step("decided", Decided("k", "allow_chat")),
    Step("resumed", Resumed(("a",), ("b",), ("c",))),
    Step("resolved", Resolved("b", "retry"), about={"by": "a person", "seconds": 0.5}),
    Step("cancel_requested", CancelRequested(4)),
    Step("paused"),
]

STATES = [
    STATE,
    replace(
        STATE, phase="tools", message_count=2, last_role="assistant",
        calls=(CallState("c", "t", "uncertain", "refuse", "k", 5, "digest"),), iterations=3,
        attempt=2, delay=1.5, usage=Usage(1, 2, 3, 4, 5), cost=0.5, last_round="x", repeats=1,
        cancelling="stopped", ending=Ending("failed", "limit", "words", "hint"),
        condensing=Condensing("drop", 3, 2, 1), squeezes=1, summaries_off=True,
        grants=(("t", "k"),), resumes=2,
    ),
]  # fmt: skip


def kept() -> dict[str, Any]:
    """All of it as it is written today."""
    return {
        "steps": [step_to_json(step) for step in STEPS],
        "states": [state_to_json(state) for state in STATES],
        "submission": submission_to_json(submission()),
    }


def test_what_version_1_wrote_is_read_with_all_it_holds() -> None:
    steps = [step_from_json(form) for form in SAMPLE["steps"]]
    assert steps == STEPS
    assert [state_from_json(form) for form in SAMPLE["states"]] == STATES
    read = submission_from_json(SAMPLE["submission"])
    assert read == submission()
    assert [each.data for each in read.attachments if each.type == "image"] == [PICTURE.data]


def test_what_is_written_today_has_the_form_of_version_1() -> None:
    assert json.loads(json_row(kept())) == SAMPLE


def test_every_kind_of_step_and_of_outcome_is_in_the_sample() -> None:
    assert {step.kind for step in STEPS} == set(get_args(StepKind))
    assert {type(step.outcome) for step in STEPS} - {type(None)} == set(get_args(Outcome))


def test_every_field_is_in_the_sample_with_more_than_its_default() -> None:
    forms = [
        *SAMPLE["steps"],
        *(call for step in SAMPLE["steps"] for call in step.get("calls", ())),
    ]
    written = {name for form in forms for name in form}
    wanted = {each.name for kind in (Step, CallRecord) for each in fields(kind)}
    assert wanted <= written
    states: list[dict[str, Any]] = SAMPLE["states"]
    assert {each.name for each in fields(RunState)} == set(states[1]) - {"v"}
    alike = {name for name, value in states[1].items() if value == states[0][name]}
    assert alike == {"v", "run_id", "limits"}


def test_pictures_are_kept_apart_where_somebody_takes_them() -> None:
    pictures: dict[str, bytes] = {}
    step = round_of_calls(1)[-1]
    form = json.loads(json_row(step_to_json(step, pictures.__setitem__)))
    assert pictures == {PICTURE.sha256: PICTURE.data}
    assert '"data"' not in json.dumps(form)
    assert step_from_json(form, pictures.__getitem__) == step
    pictures.clear()
    with pytest.raises(JsonRefused, match="bytes are not there"):
        step_from_json(form, pictures.__getitem__)


@pytest.mark.parametrize(
    "form",
    [
        {"v": 2, "kind": "begun"},
        {"v": 1, "kind": "dreamt"},
        {"v": 1, "kind": "decided", "outcome": {"type": "dreamt"}},
        {"v": 1, "kind": "begun", "messages": [{"v": 2, "id": "u", "role": "user"}]},
    ],
)
def test_a_step_from_the_future_says_that_it_is(form: Any) -> None:
    with pytest.raises(JsonRefused) as refused:
        step_from_json(form)
    assert refused.value.code == "from_the_future"
    assert "Update this one" in refused.value.hint


def test_a_state_and_a_submission_from_the_future_say_that_they_are() -> None:
    for read, form in (
        (state_from_json, SAMPLE["states"][0]),
        (submission_from_json, SAMPLE["submission"]),
    ):
        with pytest.raises(JsonRefused, match="form 2") as refused:
            read({**form, "v": 2})
        assert refused.value.code == "from_the_future"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ([], "step is a list"),
        ({"v": 0, "kind": "begun"}, "there is no such form"),
        ({"v": 1, "kind": "begun", "more": 1}, "step.more"),
        ({"v": 1, "kind": "begun", "messages": {}}, "messages is an object"),
        ({"v": 1, "kind": "decided", "outcome": {"type": "decided"}}, "decision is missing"),
        (
            {"v": 1, "kind": "decided", "outcome": {"type": "decided", "key": "k", "decision": 1}},
            "decision is the number 1",
        ),
        (
            {"v": 1, "kind": "call_settled", "outcome": {"type": "call_settled", "x": 1}},
            "outcome.x is not known",
        ),
        (
            {
                "v": 1,
                "kind": "call_settled",
                "outcome": {"type": "call_settled", "call_id": "c", "size": True},
            },
            "size is true",
        ),
        (
            {"v": 1, "kind": "input_asked", "calls": [{"use": {"type": "text", "text": ""}}]},
            "is missing",
        ),
    ],
)
def test_what_is_no_step_is_refused_with_the_place(form: Any, said: str) -> None:
    with pytest.raises(JsonRefused, match=said):
        step_from_json(form)


def test_a_block_of_another_kind_is_no_call() -> None:
    form = {"use": {"type": "text", "text": ""}, "message_id": "a"}
    with pytest.raises(JsonRefused, match="is a text"):
        step_from_json({"v": 1, "kind": "input_asked", "calls": [form]})


def test_a_state_that_lost_a_field_is_refused() -> None:
    with pytest.raises(JsonRefused, match="limits"):
        state_from_json({"v": 1, "run_id": "r"})


def test_what_json_cannot_hold_is_refused_when_it_is_written() -> None:
    with pytest.raises(NotSerialisable, match="about"):
        step_to_json(Step("begun", about={"x": object()}))
    with pytest.raises(NotSerialisable, match="fitting"):
        submission_to_json(Submission("r", submission().identity, "s", "q", "", (), {"x": {1}}))
