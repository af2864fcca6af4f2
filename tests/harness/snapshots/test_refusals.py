"""What could not be loaded again is not written, and a good file stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.snapshots.kept import FULL, sealed
from web.harness.snapshots.folder import SnapshotFolder
from web.harness.snapshots.form import MOST, read_snapshot, write_snapshot
from web.harness.snapshots.snapshot import Snapshot
from web.harness.values.errors import (
    ConfigurationError,
    HarnessError,
    LimitExceeded,
    SnapshotRefused,
)
from web.harness.values.json_form import NotSerialisable, parse_json
from web.harness.values.learned_limits import MAX_MODELS
from web.harness.values.usage import MAX_TOKENS

odd: Callable[..., Any] = replace

BROKEN = [
    odd(FULL, metadata=None),
    odd(FULL, metadata=[1]),
    odd(FULL, metadata={"half": "\ud800"}),
    odd(FULL, metadata={"\ud800": 1}),
    odd(FULL, extensions={"plan": [1]}),
    odd(FULL, learned_limits={"a:": {"context_tokens": 1000}}),
    odd(FULL, learned_limits={"a:b": {"context_tokens": 1}}),
    odd(FULL, cost=-1.0),
    odd(FULL, pinned=("gone",)),
    odd(FULL, messages=FULL.messages[1:]),
    odd(FULL, metadata={"api_key": "x"}),
    odd(FULL, extensions={"plan": {"auth": {"accessToken": "x"}}}),
    odd(FULL, metadata={"large": "x" * (MOST["metadata"] + 1)}),
    odd(FULL, metadata={"large": [0] * MOST["metadata"]}),
    odd(
        FULL,
        learned_limits={f"a:{n}": {"context_tokens": 1000} for n in range(MAX_MODELS + 1)},
    ),
]


@pytest.mark.parametrize("snapshot", BROKEN)
def test_what_could_not_be_loaded_is_refused_and_the_good_file_stays(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.save(FULL)
    with pytest.raises(HarnessError) as refused:
        folder.save(snapshot)
    kinds = (SnapshotRefused, NotSerialisable, LimitExceeded, ConfigurationError)
    assert isinstance(refused.value, kinds)
    assert "othing was" in refused.value.hint
    assert folder.load(FULL.session_id) == FULL


def edited(**changes: Any) -> bytes:
    return sealed({**parse_json(write_snapshot(FULL)), **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"usage": {"input_tokens": 10**300}}, "usage.input_tokens is more than"),
        ({"usage": {"input_tokens": MAX_TOKENS + 1}}, "usage.input_tokens is more than"),
        ({"cost": 1e300}, "cost is more than"),
        ({"cost": 10**1000}, "cost is a number too large"),
        ({"metadata": {"a": [0] * MOST["metadata"]}}, "Its metadata are larger than 1.0 MB"),
        (
            {"learned_limits": {f"a:{n}": {"context_tokens": 1000} for n in range(2_000)}},
            "at most 1,000",
        ),
    ],
)
def test_a_file_of_more_than_anybody_has_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SnapshotRefused) as refused:
        read_snapshot(edited(**changes))
    assert said in refused.value.message
