"""Two servers change the record of one chat: both changes count."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from web.chats.records.merging import merged
from web.harness.sessions.records import Record

names = st.lists(st.sampled_from("abcd"), unique=True).map(sorted)
limits = st.fixed_dictionaries({"max_tokens": st.sampled_from([None, 1, 2]), "most": st.booleans()})
servers = st.dictionaries(st.sampled_from("st"), st.integers(1, 2)).map(
    lambda found: [{"name": name, "entry": entry} for name, entry in found.items()]
)
records = st.builds(
    lambda place, deleted_at, **body: Record("c", place, body, deleted_at),
    st.sampled_from([1.0, 2.0]),
    st.sampled_from([None, 5.0]),
    title=st.sampled_from(["", "A", "B"]),
    draft=st.sampled_from(["", "x", "y"]),
    grants=names,
    attachments=names,
    setup=limits,
    servers=servers,
)


def parts(record: Record) -> dict[str, Any]:
    """Each thing that can change by itself."""
    found: dict[str, Any] = {"place": record.place, "deleted_at": record.deleted_at}
    for name in ("title", "draft"):
        found[name] = record.body[name]
    found |= {f"setup {name}": each for name, each in record.body["setup"].items()}
    for name in ("grants", "attachments"):
        found |= {f"{name} {each}": each in record.body[name] for each in "abcd"}
    entries = {each["name"]: each["entry"] for each in record.body["servers"]}
    return found | {f"server {name}": entries.get(name) for name in "st"}


@given(records, records, records)
def test_what_one_changed_counts_and_what_nobody_changed_stays(
    base: Record, ours: Record, theirs: Record
) -> None:
    before, here, there = parts(base), parts(ours), parts(theirs)
    expected = {name: there[name] if here[name] == before[name] else here[name] for name in before}
    if before["place"] not in (here["place"], there["place"]):
        expected["place"] = max(here["place"], there["place"])
    if not here["draft"]:
        expected["draft"] = there["draft"] if there["draft"] != before["draft"] else ""
    for name in before:
        # Taken off there and changed here, or the other way round: what was changed here stays.
        if name.startswith("server") and here[name] != before[name]:
            expected[name] = here[name]
    assert parts(merged(base, ours, theirs)) == expected


@given(records, records)
def test_one_that_changes_alone_is_taken_as_it_is(base: Record, ours: Record) -> None:
    assert parts(merged(base, ours, base)) == parts(ours)
    assert parts(merged(base, base, ours)) == parts(ours)
    assert merged(None, ours, base) == ours


@given(records, records, records)
def test_what_was_merged_before_is_merged_again_to_the_same(
    base: Record, ours: Record, theirs: Record
) -> None:
    once = merged(base, ours, theirs)
    assert merged(base, ours, once) == once


def test_a_field_of_a_newer_version_is_left_as_it_is() -> None:
    base = Record("c", 1.0, {"title": "", "colour": "red"})
    ours, theirs = (
        Record("c", 1.0, {"title": "A"}),
        Record("c", 1.0, {"title": "", "colour": "blue"}),
    )
    assert merged(base, ours, theirs).body == {"title": "A", "colour": "blue"}


def test_a_field_that_is_gone_from_the_row_is_written_again() -> None:
    base, damaged = Record("c", 1.0, {"title": "", "model": "m"}), Record("c", 1.0, {})
    ours = Record("c", 1.0, {"title": "A", "model": "m"})
    assert merged(base, ours, damaged).body == ours.body
