"""What is no text is refused in words, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from web.harness.memory.facts import LongTermMemory
from web.harness.memory.notes import AgentMemory
from web.harness.values.errors import HarnessError

NOTES: list[Callable[[Any], object]] = [
    lambda notes: notes.save(None, "x"),
    lambda notes: notes.save(b"a", "x"),
    lambda notes: notes.save("a", None),
    lambda notes: notes.save("a", "x", tags=5),
    lambda notes: notes.save("a", "x", tags=None),
    lambda notes: notes.save("a", "x", tags=[5]),
    lambda notes: notes.update("kept", content=5),
    lambda notes: notes.search(None),
    lambda notes: notes.search("kept", limit="5"),
    lambda notes: notes.get(None),
    lambda notes: notes.delete(5),
    lambda notes: notes.restore(None),
    lambda notes: notes.list(tags=5),
]

FACTS: list[Callable[[Any], object]] = [
    lambda facts: facts.save(None),
    lambda facts: facts.save("a", category=5),
    lambda facts: facts.update(None, "x"),
    lambda facts: facts.search(5),
    lambda facts: facts.search("kept", limit=1.5),
    lambda facts: facts.get(["x"]),
    lambda facts: facts.delete(None),
    lambda facts: facts.restore(None),
]


@pytest.mark.parametrize("do", NOTES)
def test_a_store_of_notes_refuses_what_is_no_text(
    tmp_path: Path, do: Callable[[Any], object]
) -> None:
    notes = AgentMemory(tmp_path)
    notes.save("kept", "text")
    with pytest.raises(HarnessError, match=r"has to be|have to be|can be brought back"):
        do(notes)
    assert [info.id for info in notes.list()] == ["kept"]


@pytest.mark.parametrize("do", FACTS)
def test_a_store_of_facts_refuses_what_is_no_text(
    tmp_path: Path, do: Callable[[Any], object]
) -> None:
    facts = LongTermMemory(tmp_path)
    facts.save("kept")
    with pytest.raises(HarnessError, match=r"has to be|can be brought back"):
        do(facts)
    assert [fact.text for fact in facts.list()] == ["kept"]


def test_a_search_without_a_limit_finds_all(tmp_path: Path) -> None:
    facts = LongTermMemory(tmp_path)
    for number in range(12):
        facts.save(f"apple {number}")
    assert len(facts.search("apple", limit=None)) == 12  # type: ignore[arg-type]
    assert facts.search("apple", limit=-1) == []
