"""A run as a file: it comes back whole and holds no secret; anything else is refused in words."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from web.chats.steps.opened_runs import MAX_OPENED, OpenedRuns
from web.chats.steps.run_files import (
    MAX_STEPS,
    RunFile,
    RunFileRefused,
    is_run_file,
    read_run_file,
    write_run_file,
)
from web.chats.steps.step_kinds import ShownStep, StepCall
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import LimitExceeded, NotFound
from web.harness.values.json_form import canonical
from web.harness.values.secret_names import LEFT_OUT
from web.harness.values.usage import Usage

SAMPLE = Path(__file__).with_name("run-1.json")
"""As version 1 was written; never written again."""

CALL = StepCall(
    "c", "look", {"at": [1, {"deep": "日"}]}, "bad", "safe", "no", "allow", True, {"message": "?"},
    "found", True, 2, 0.25,
)  # fmt: skip
RUN = RunFile(
    "r1",
    "A title",
    1_790_000_100.5,
    (
        ShownStep(1, 1_790_000_000.0, "begun", roles=("user",), text="Hi", attachments=("a.txt",)),
        ShownStep(2, 1_790_000_001.0, "model_call", 3, model="demo:demo", about={"tokens": 12}),
        ShownStep(
            3, 1_790_000_002.5, "answered", 9, "demo:demo", 1.5, Usage(10, 2, 1, 0, 1), 0.5,
            ("assistant",), "Let me look", "hm", (), (CALL,), "tool_use", forks=True,
        ),
        ShownStep(4, 1_790_000_003.0, "model_failed", how="busy", words="Too much.", wait=2.0),
    ),
)  # fmt: skip


def changed(**fields: Any) -> bytes:
    """The file of `RUN` with other fields, its digest right."""
    form = {**json.loads(write_run_file(RUN)), **fields}
    form.pop("digest")
    digest = hashlib.sha256()
    for name, value in sorted(form.items()):
        digest.update(canonical(name) + b":")
        for each in value if name == "steps" and isinstance(value, list) else (value,):
            digest.update(canonical(each) + b"\n")
    return json.dumps({**form, "digest": f"sha256:{digest.hexdigest()}"}).encode()


def test_a_run_comes_back_as_it_was_one_step_a_line() -> None:
    data = write_run_file(RUN)
    assert is_run_file(data)
    assert is_run_file(b"\xef\xbb\xbf" + data)
    assert not is_run_file(data.replace(b"harness-web run", b"harness-web snapshot"))
    assert read_run_file(data) == RUN
    lines = data.decode().splitlines()
    assert sum(line.startswith('{"number":') for line in lines) == len(RUN.steps)


def test_what_the_first_version_wrote_is_read_for_ever() -> None:
    assert read_run_file(SAMPLE.read_bytes()) == RUN


def test_nothing_that_looks_like_a_secret_is_in_the_file() -> None:
    key = "sk-ant-" + "a1b2" * 8
    call = replace(CALL, arguments={"api_key": "hunter2", "n": 5}, result=f'{{"k":"{key}"}}')
    step = replace(
        RUN.steps[2], number=1, text=f"Use {key}, please", calls=(call,), about={"password": "pw1"}
    )
    data = write_run_file(replace(RUN, steps=(step,), title=f"About {key}"))
    for secret in (key, "hunter2", "pw1"):
        assert secret.encode() not in data
    (back,) = read_run_file(data).steps
    assert back.text == f"Use {LEFT_OUT}, please"
    assert back.calls[0].arguments == {"api_key": LEFT_OUT, "n": 5}
    assert back.calls[0].result == f'{{"k":"{LEFT_OUT}"}}'


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"{", "run_file_refused", "ends too early"),
        (b"[]", "run_file_refused", "has to be an object"),
        (b'{"format": "harness-web snapshot"}', "run_file_refused", "no run of this program"),
        (changed(version=2), "from_the_future", "reads up to 1"),
        (changed(version=0), "run_file_refused", "no such version"),
        (changed(more=1), "run_file_refused", "not known: more"),
        (changed(steps=[{"number": 1, "at": 0, "kind": "flown"}]), "run_file_refused", "no step"),
        (changed(steps=[{"number": 2, "at": 0, "kind": "begun"}]), "run_file_refused", "from 1"),
        (changed(steps=[{"number": 1, "at": 1e300, "kind": "begun"}]), "run_file_refused", "time"),
        (
            changed(steps=[{"number": "1", "at": 0, "kind": "begun"}]),
            "run_file_refused",
            "steps[0]",
        ),
        (changed(steps=[{"number": 1, "at": 0, "kind": "begun", "x": 1}]), "run_file_refused", "x"),
        (
            changed(steps=[{"number": 1, "at": 0, "kind": "begun", "roles": [5]}]),
            "run_file_refused",
            "roles[0]",
        ),
        (write_run_file(RUN).replace(b"Let me", b"Let us"), "run_file_refused", "was changed"),
    ],
)
def test_what_is_no_such_file_is_refused_with_what_is_wrong(
    data: bytes, code: str, words: str
) -> None:
    with pytest.raises(RunFileRefused) as caught:
        read_run_file(data)
    assert caught.value.code == code
    assert words in caught.value.message
    assert caught.value.hint


def test_a_run_of_more_steps_than_a_file_has_is_neither_written_nor_read() -> None:
    step = ShownStep(1, 0.0, "paused")
    many = RunFile("r", "", 0.0, (step,) * (MAX_STEPS + 1))
    with pytest.raises(LimitExceeded, match="100,001 steps"):
        write_run_file(many)
    with pytest.raises(RunFileRefused, match="100,001 steps"):
        read_run_file(changed(steps=[0] * (MAX_STEPS + 1)))


def test_a_file_that_is_too_large_is_neither_written_nor_read() -> None:
    with pytest.raises(LimitExceeded, match="may have"):
        write_run_file(RUN, 100)
    with pytest.raises(LimitExceeded, match="may have"):
        read_run_file(write_run_file(RUN), 100)


@pytest.mark.anyio
async def test_what_was_opened_is_its_openers_and_the_oldest_is_closed_beyond_the_limit() -> None:
    ids = iter(map(str, range(1_000)))
    opened = OpenedRuns(lambda: next(ids))
    ann, eve = HarnessIdentity("here", "ann"), HarnessIdentity("here", "eve")
    data = write_run_file(RUN)
    first = await opened.open(ann, data)
    assert opened.get(ann, first) == RUN
    with pytest.raises(NotFound):
        opened.get(eve, first)
    for _ in range(MAX_OPENED):
        await opened.open(eve, data)
    assert opened.get(ann, first) == RUN
    for _ in range(MAX_OPENED):
        await opened.open(ann, data)
    with pytest.raises(NotFound, match="not open"):
        opened.get(ann, first)
