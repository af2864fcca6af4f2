"""Facts: kept by category with an id, and never lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from web.harness.memory.facts import LongTermMemory
from web.harness.memory.limits import MemoryLimits
from web.harness.memory.notes import AgentMemory
from web.harness.values.errors import LimitExceeded, MemoryRefused, NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def facts(folder: Path) -> LongTermMemory:
    return LongTermMemory(storage_dir=folder)


def test_a_fact_has_an_id_by_which_it_is_changed_and_deleted(
    folder: Path, facts: LongTermMemory
) -> None:
    id = facts.save("Prefers tea", category="Preference")
    other = facts.save("Lives in Köln", category="person")
    facts.update(id, "Prefers coffee")
    again = LongTermMemory(storage_dir=folder)
    assert again.get(id).text == "Prefers coffee"
    assert again.get(id).category == "preference"
    assert [fact.id for fact in again.list(category="person")] == [other]
    deleted = facts.delete(id)
    assert [fact.id for fact in again.list()] == [other]
    assert b"coffee" not in (folder / "facts.jsonl").read_bytes()
    assert facts.restore(deleted) == id
    assert again.get(id) == deleted
    assert facts.restore(deleted) != id


def test_nothing_is_written_before_something_is_saved(folder: Path, facts: LongTermMemory) -> None:
    assert facts.list() == []
    assert facts.search(query="anything") == []
    assert facts.faults() == []
    assert not folder.exists()


def test_the_same_fact_is_kept_once(facts: LongTermMemory) -> None:
    id = facts.save("Likes Café")
    assert facts.save("likes cafe") == id
    assert facts.save("Likes Café", category="other") != id
    assert len(facts.list()) == 2


def test_the_one_changed_last_is_listed_first(folder: Path) -> None:
    times = iter(range(1_000, 2_000))
    facts = LongTermMemory(folder, now=lambda: float(next(times)))
    first, second = facts.save("one"), facts.save("two")
    assert [fact.id for fact in facts.list()] == [second, first]
    facts.update(first, "three")
    assert [fact.id for fact in facts.list()] == [first, second]


def test_facts_are_found_by_words_the_best_first(facts: LongTermMemory) -> None:
    facts.save("The cat is called Mia", category="person")
    best = facts.save("The project analyzes invoices", category="project")
    facts.save("The project is late", category="project")
    assert facts.search(query="what does the project analyze?")[0].id == best
    assert [fact.id for fact in facts.search("invoice")] == [best]
    assert facts.search("project", category="person") == []
    assert facts.search("nothing of that kind") == []


def test_what_was_changed_by_hand_counts_and_what_was_added_stays(
    folder: Path, facts: LongTermMemory
) -> None:
    id = facts.save("about apples")
    file = folder / "facts.jsonl"
    line = json.loads(file.read_text())
    for fruit in ("grapes", "lemons", "melons"):
        mine = {"text": f"about {fruit}", "mine": [1, "half \ud83d"]}
        file.write_text(json.dumps(line | mine) + "\n")
        assert [fact.text for fact in facts.search(fruit)] == [f"about {fruit}"]
    facts.update(id, "about plums")
    assert json.loads(file.read_text())["mine"] == [1, "half \ud83d"]
    file.write_text('{"id": "x", "text": "no category"}')
    assert [(fact.id, fact.category) for fact in facts.list()] == [("x", "general")]
    line = '{"id": "x", "text": "odd", "created": "0001-01-01", "updated": 5}'
    file.write_text(line)
    assert [(fact.created, fact.updated) for fact in facts.list()] == [(0.0, 0.0)]
    facts.update("x", "new")
    file.unlink()
    assert facts.list() == []


def test_a_broken_line_is_told_of_kept_and_harms_no_other(
    folder: Path, facts: LongTermMemory
) -> None:
    id = facts.save("good")
    file = folder / "facts.jsonl"
    broken = [
        b'{"id": "cut", "tex',
        b"[1]",
        b'{"id": 5, "text": "x"}',
        b'{"id": "y"}',
        b'{"id": "half", "text": "\\ud83d"}',
        b"\xff\xfe",
        json.dumps({"id": id, "text": "the same id"}).encode(),
        b"[" * 5000,
    ]
    file.write_bytes(file.read_bytes() + b"\n" + b"\n".join(broken))
    assert [fact.text for fact in facts.list()] == ["good"]
    assert [fault.line for fault in facts.faults()] == [3, 4, 5, 6, 7, 8, 9, 10]
    facts.save("another")
    facts.delete(id)
    left = file.read_bytes()
    assert all(line in left for line in broken)
    assert {fact.text for fact in facts.list()} == {"another", "the same id"}


def test_a_file_that_cannot_be_read_is_never_written_over(
    tmp_path: Path, folder: Path, facts: LongTermMemory
) -> None:
    folder.mkdir()
    target = tmp_path / "elsewhere"
    target.write_text("secret")
    (folder / "facts.jsonl").symlink_to(target)
    for attempt in (facts.list, lambda: facts.save("x"), facts.look):
        with pytest.raises(MemoryRefused, match="link"):
            attempt()
    assert target.read_text() == "secret"
    small = LongTermMemory(tmp_path / "small", limits=MemoryLimits(max_facts_bytes=300))
    small.save("one")
    (tmp_path / "small" / "facts.jsonl").write_text("x" * 301)
    with pytest.raises(MemoryRefused, match="300"):
        small.save("two")
    assert (tmp_path / "small" / "facts.jsonl").read_text() == "x" * 301


def test_limits_are_told_and_nothing_is_lost(folder: Path) -> None:
    limits = MemoryLimits(max_facts=2, max_fact_chars=10)
    facts = LongTermMemory(folder, limits=limits)
    with pytest.raises(LimitExceeded, match="at most 10"):
        facts.save("x" * 11)
    with pytest.raises(MemoryRefused):
        facts.save("  ")
    with pytest.raises(LimitExceeded, match="category"):
        facts.save("x", category="c" * 51)
    first = facts.save("one")
    facts.save("two")
    with pytest.raises(LimitExceeded, match="the limit"):
        facts.save("three")
    assert facts.get(first).text == "one"


def test_a_fact_changed_meanwhile_is_not_written_over(facts: LongTermMemory) -> None:
    id = facts.save("one")
    seen = facts.get(id).digest
    facts.update(id, "two", seen=seen)
    with pytest.raises(MemoryRefused) as caught:
        facts.update(id, "three", seen=seen)
    assert caught.value.code == "memory_changed"
    with pytest.raises(NotFound):
        facts.update("nobody", "x")
    with pytest.raises(NotFound):
        facts.delete("nobody")


def test_notes_and_facts_may_lie_in_one_folder(folder: Path, facts: LongTermMemory) -> None:
    notes = AgentMemory(folder)
    facts.save("a fact")
    notes.save("facts", "a note")
    assert len(facts.list()) == len(notes.list()) == 1
    assert facts.faults() == []
