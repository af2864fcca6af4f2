"""What workflows of earlier versions left has to be replayed: see `record_histories`."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from web.harness.runtime.temporal.workflow import RunWorkflow

pytestmark = pytest.mark.anyio

HISTORIES = Path(__file__).with_name("histories")


async def replay(text: str) -> None:
    history = WorkflowHistory.from_json("recorded", text)
    await Replayer(workflows=[RunWorkflow]).replay_workflow(history)


@pytest.mark.parametrize("name", sorted(path.stem for path in HISTORIES.glob("*.json")))
async def test_a_recorded_history_is_replayed(name: str) -> None:
    await replay((HISTORIES / f"{name}.json").read_text())


def test_there_is_a_history_of_each_kind() -> None:
    names = {path.stem for path in HISTORIES.glob("*.json")}
    assert names >= {
        "plain",
        "approval",
        "cancelled",
        "uncertain",
        "left",
        "continued",
        "taken",
        "kept",
    }


async def test_a_workflow_that_does_otherwise_than_it_did_is_found() -> None:
    text = (HISTORIES / "approval.json").read_text()
    form = json.loads(text)
    for event in form["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled is not None and _data(scheduled).get("what") == "tool":
            scheduled["activityType"]["name"] = "another"
    with pytest.raises(NondeterminismError):
        await replay(json.dumps(form))


def _data(scheduled: dict[str, dict[str, list[dict[str, str]]]]) -> dict[str, str]:
    found = json.loads(base64.b64decode(scheduled["input"]["payloads"][0]["data"]))
    return found if isinstance(found, dict) else {}
