"""A snapshot comes back as it went, and a file that is not as it was saved is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tests.harness.snapshots.kept import CONVERSATION, FULL, sealed
from tests.support.pictures import picture
from web.harness.snapshots.form import VERSION, read_snapshot, write_snapshot
from web.harness.snapshots.snapshot import Snapshot
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ConfigurationError, LimitExceeded, SnapshotRefused
from web.harness.values.json_form import NotSerialisable
from web.harness.values.messages import ImageBlock, Message, TextBlock


def form() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(write_snapshot(FULL))
    return made


def refusal(data: bytes) -> SnapshotRefused:
    with pytest.raises(SnapshotRefused) as refused:
        read_snapshot(data)
    return refused.value


@pytest.mark.parametrize("snapshot", [FULL, Snapshot("empty")])
def test_a_snapshot_comes_back_equal(snapshot: Snapshot) -> None:
    assert read_snapshot(write_snapshot(snapshot)) == snapshot


def test_pictures_are_in_the_file_and_come_back_with_their_bytes() -> None:
    plan = picture("plan.png")
    asked = Message("r1-0", "user", (plan, TextBlock("What is this?")))
    [back] = read_snapshot(write_snapshot(replace(FULL, messages=(asked,)))).messages
    [block] = back.pictures
    assert (block, block.data) == (plan, plan.data)


def test_a_file_has_a_line_for_each_message() -> None:
    lines = write_snapshot(FULL).decode().splitlines()
    assert [line for line in lines if line.startswith('{"v":1,"id":"r1-3"')]
    assert len(lines) == len(form()) + len(CONVERSATION) + 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": {"when": object()}}, "metadata.when is an object"),
        ({"metadata": {"at": (1, 2)}}, "metadata.at is a tuple"),
        ({"extensions": {"plan": {"steps": {1, 2}}}}, "extensions.plan.steps is a set"),
        ({"cost": float("nan")}, "cost is nan"),
    ],
)
def test_what_cannot_be_serialised_is_refused_at_saving(change: dict[str, Any], said: str) -> None:
    with pytest.raises(NotSerialisable, match=said):
        write_snapshot(replace(FULL, **change))


def test_what_could_not_be_loaded_again_is_refused_at_saving() -> None:
    called = replace(FULL, messages=CONVERSATION[:2])
    with pytest.raises(SnapshotRefused, match="cannot be saved: messages ends with 1 calls"):
        write_snapshot(called)
    fake = ImageBlock("image/png", "0" * 64, b"none")
    pictured = replace(FULL, messages=(Message("a", "user", (fake,)),))
    with pytest.raises(SnapshotRefused, match="other bytes than its sha256"):
        write_snapshot(pictured)
    with pytest.raises(ConfigurationError, match="looks like a secret"):
        write_snapshot(replace(FULL, config=AgentConfig(extra={"api_key": "sk-1"})))


def test_a_snapshot_above_the_limit_is_neither_written_nor_read() -> None:
    data = write_snapshot(FULL)
    with pytest.raises(LimitExceeded, match="the limit is 1 KB"):
        write_snapshot(FULL, 1000)
    with pytest.raises(LimitExceeded, match="the limit is 1 KB"):
        read_snapshot(data, 1000)


def test_a_file_that_is_cut_off_anywhere_is_refused() -> None:
    data = write_snapshot(FULL)
    whole = data.rstrip()
    for end in range(0, len(whole), 7):
        assert refusal(whole[:end]).code == "snapshot_refused"
    assert "ends too early" in refusal(whole[:-1]).message


def test_a_file_that_was_edited_is_refused_wherever_it_was() -> None:
    data = write_snapshot(FULL)
    for old, new in [
        (b"invoice assistant", b"pirate assistant"),
        (b'"42."', b'"43."'),
        (b"150000", b"150001"),
        (b'"input_tokens":270', b'"input_tokens":271'),
        (b'"pinned":["r1-0"]', b'"pinned":[]'),
    ]:
        assert data.count(old) == 1
        assert "changed after it was saved" in refusal(data.replace(old, new)).message


def test_a_file_that_was_only_laid_out_anew_is_read() -> None:
    laid_out = json.dumps(dict(reversed(form().items())), indent=2).encode("utf-8-sig")
    assert read_snapshot(laid_out) == FULL


def test_a_snapshot_from_the_future_is_refused_as_such() -> None:
    refused = refusal(sealed({**form(), "version": VERSION + 1, "news": True}))
    assert refused.code == "from_the_future"
    assert "version 2; this program reads up to 1" in refused.message
    assert "Update" in refused.hint
    later = form()
    later["messages"][0]["v"] = 2
    assert refusal(sealed(later)).code == "from_the_future"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "not known here"),
        ({"version": 0}, "no such version"),
        ({"version": "1"}, "version is the text '1'"),
        ({"session_id": "../../etc/passwd"}, "cannot be the id"),
        ({"session_id": 5}, "session_id is the number 5"),
        ({"created_at": "yesterday"}, "has to be a time"),
        ({"created_at": "2026-01-01T00:00:00"}, "has to be a time"),
        ({"usage": {"input_tokens": -1}}, "usage.input_tokens"),
        ({"usage": {"tokens": 1}}, "not known: usage.tokens"),
        ({"cost": "1"}, "cost is the text"),
        ({"config": {"colour": 1}}, "no field 'colour'"),
        ({"config": {"max_iterations": 0}}, "max_iterations"),
        ({"learned_limits": {"a:b": 0}}, "learned of a:b"),
        ({"learned_limits": {"b": {}}}, "'b' is not a model"),
        ({"learned_limits": {"a:b": {"context_tokens": True}}}, "learned of a:b"),
        ({"pinned": ["nobody"]}, "no message of it"),
        ({"metadata": []}, "metadata is a list"),
        ({"extensions": {"plan": 1}}, "extensions.plan is the number 1"),
        ({"messages": {}}, "messages is an object"),
        ({"messages": [{"v": 1, "id": "a", "role": "tool", "content": [1]}]}, "object"),
        ({"mood": 1}, "not known: mood"),
    ],
)
def test_a_file_that_was_edited_and_sealed_again_is_still_checked(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SnapshotRefused, match=said):
        read_snapshot(sealed({**form(), **change}))


@pytest.mark.parametrize("missing", sorted(form()))
def test_a_file_without_one_of_its_fields_is_refused(missing: str) -> None:
    edited = form()
    del edited[missing]
    if missing == "digest":
        assert "digest is missing" in refusal(json.dumps(edited).encode()).message
    elif missing == "cost":
        assert read_snapshot(sealed(edited)).cost is None
    else:
        assert refusal(sealed(edited))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends too early"),
        (b"[]", "a list and has to be an object"),
        (b"{}", "no snapshot"),
        (b"PK\x03\x04\xff", "UTF-8"),
        (b"[" * 10_000_000, "more values"),
        (b'{"a":' * 50_000, "nested"),
    ],
)
def test_what_is_no_snapshot_at_all_is_refused(data: bytes, said: str) -> None:
    assert said in refusal(data).message


def test_a_picture_that_is_none_is_refused_however_it_is_sealed() -> None:
    page = b"<script>alert(1)</script>"
    edited = form()
    edited["messages"][0]["content"] = [
        {
            "type": "image",
            "media_type": "image/png",
            "sha256": sha256(page).hexdigest(),
            "data": "PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
        }
    ]
    assert "picture that is none" in refusal(sealed(edited)).message
