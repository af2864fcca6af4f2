"""Of very many texts those of one kind are found among all, not among the best ones alone."""

from __future__ import annotations

from pathlib import Path

from web.harness.memory.fact_lines import Fact, made
from web.harness.memory.facts import LongTermMemory
from web.harness.memory.notes import AgentMemory
from web.harness.memory.word_index import MAX_VISITS, WordIndex


def test_what_is_kept_is_found_however_many_others_fit_better() -> None:
    index = WordIndex()
    for number in range(700):
        index.put(f"best-{number}", [("common", 1.0)])
    for number in range(3):
        index.put(f"mine-{number}", [("common and many other words", 1.0)])
    found = index.search("common", 10, lambda key: key.startswith("mine"))
    assert {key for key, _ in found} == {"mine-0", "mine-1", "mine-2"}


def test_a_common_word_counts_where_few_texts_are_looked_among() -> None:
    index = WordIndex()
    index.put("rare", [("rare word", 1.0)])
    for number in range(MAX_VISITS + 1):
        index.put(f"n{number}", [("common", 1.0)])
    found = index.search("rare common", 10, lambda key: key in ("rare", "n7"))
    assert [key for key, _ in found] == ["rare", "n7"]


def test_notes_of_a_tag_are_found_among_very_many(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"n{number}.md").write_text("common")
    notes = AgentMemory(tmp_path)
    mine = notes.save("Mine", "common among a good many other words of its own", ["mine"])
    assert [note.id for note in notes.search("common", tags=["mine"])] == [mine]


def test_facts_of_a_category_are_found_among_very_many(tmp_path: Path) -> None:
    facts = [Fact(f"f{number}", "other", "common") for number in range(600)]
    facts.append(Fact("mine", "mine", "common among a good many other words of its own"))
    (tmp_path / "facts.jsonl").write_bytes(b"".join(made(fact).raw + b"\n" for fact in facts))
    found = LongTermMemory(tmp_path).search("common", category="mine")
    assert [fact.id for fact in found] == ["mine"]
