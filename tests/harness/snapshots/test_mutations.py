"""Whatever was done to a file: reading it gives a snapshot or an error in words, no crash."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.harness.snapshots.kept import SAMPLES, sealed
from web.harness.snapshots.form import read_snapshot, write_snapshot
from web.harness.values.errors import HarnessError

NAMES = ("v1-blocks", "v1", "harnessx-0.3.0", "harnessx-0.4.0")
RAW = {name: (SAMPLES / f"{name}.json").read_bytes() for name in NAMES}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["text", "tool_use", "tool_result", "user", "tool", "r1-0", "../x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value inside a JSON value."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(each for key, one in inner for each in places(one, (*path, key)))]


def changed(form: Any, path: tuple[Any, ...], value: Any, how: str) -> Any:
    if not path:
        return value
    made = copy.deepcopy(form)
    place = made
    for key in path[:-1]:
        place = place[key]
    if how == "delete":
        del place[path[-1]]
    elif how == "double" and isinstance(place, list):
        place.append(place[path[-1]])
    else:
        place[path[-1]] = value
    return made


def tried(data: bytes) -> None:
    fault: HarnessError | None = None
    try:
        snapshot = read_snapshot(data)
    except HarnessError as error:
        fault = error
    if fault is None:
        assert read_snapshot(write_snapshot(snapshot)) == snapshot
    else:
        assert 0 < len(fault.message) < 2_000


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_field_that_is_another_or_gone_is_never_a_crash(name: str, data: st.DataObject) -> None:
    form = json.loads(RAW[name])
    path = data.draw(st.sampled_from(places(form)))
    how = data.draw(st.sampled_from(["replace", "delete", "double"]))
    made = changed(form, path, data.draw(values), how)
    tried(
        sealed(made) if isinstance(made, dict) and "format" in made else json.dumps(made).encode()
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 3_000), st.binary(max_size=4), st.integers(0, 30))
def test_bytes_that_are_others_are_never_a_crash(
    name: str, at: int, new: bytes, length: int
) -> None:
    raw = RAW[name]
    tried(raw[:at] + new + raw[at + length :])
