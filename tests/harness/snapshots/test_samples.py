"""Files that were once saved load for ever; each shape that was ever written is frozen here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.snapshots.kept import FULL, SAMPLES
from tests.harness.values.test_codec import conversation
from web.harness.snapshots.form import read_snapshot
from web.harness.values.errors import SnapshotRefused
from web.harness.values.messages import ToolResultBlock


def test_a_snapshot_of_version_1_loads_with_all_it_holds() -> None:
    assert read_snapshot((SAMPLES / "v1.json").read_bytes()) == FULL


def test_every_kind_of_block_of_version_1_loads() -> None:
    snapshot = read_snapshot((SAMPLES / "v1-blocks.json").read_bytes())
    assert snapshot == replace(FULL, messages=tuple(conversation()), pinned=("r-2",))
    saved, now = snapshot.messages[2].content[0], conversation()[2].content[0]
    assert isinstance(saved, ToolResultBlock)
    assert isinstance(now, ToolResultBlock)
    assert [each.data for each in saved.pictures] == [each.data for each in now.pictures]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ("future", "It has version 2; this program reads up to 1."),
        ("future-message", "in form 2; this version reads up to 1"),
    ],
)
def test_a_snapshot_from_the_future_says_that_it_is(sample: str, said: str) -> None:
    with pytest.raises(SnapshotRefused) as refused:
        read_snapshot((SAMPLES / f"{sample}.json").read_bytes())
    assert refused.value.code == "from_the_future"
    assert said in refused.value.message
    assert "Update this one" in refused.value.hint
