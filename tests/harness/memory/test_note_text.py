"""Front matter as a hand may have written it, in our own form or nearly so."""

from __future__ import annotations

from pathlib import Path

import pytest

from web.harness.memory.notes import AgentMemory
from web.harness.memory.prompt import memory_prompt

OURS = (
    "---\ntitle: {}\ntags: [{}]\ncreated: 2026-01-02T03:04:05Z\n"
    "updated: 2026-01-02T03:04:05Z\n---\n\nthe words\n"
)


def written(folder: Path, title: str, tags: str = "") -> AgentMemory:
    folder.mkdir()
    (folder / "edited.md").write_text(OURS.format(title, tags), encoding="utf-8")
    notes = AgentMemory(folder)
    notes.save("Good", "apples")
    return notes


@pytest.mark.parametrize("title", [r'"a\qb"', r'"a\uZZb"', r'"\UFFFFFFFF"', r'"\x"'])
def test_a_title_that_cannot_be_read_is_a_fault_of_its_note_alone(
    tmp_path: Path, title: str
) -> None:
    notes = written(tmp_path / "notes", title)
    faults = {info.id: info.fault for info in notes.list()}
    assert faults["edited"]
    assert not faults["good"]
    assert [note.id for note in notes.search("apples words")] == ["good"]
    assert "Good" in memory_prompt(agent_memory=notes)


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ('"a\tb"', "a b"),
        (r'"a\ud800b"', "a\ufffdb"),
        (r'"a\u0000b"', "a b"),
        ('""', "edited"),
        (r'" \u0009"', "edited"),
    ],
)
def test_an_odd_title_is_read_on_one_line_and_can_be_told_and_changed(
    tmp_path: Path, title: str, read: str
) -> None:
    notes = written(tmp_path / "notes", title)
    assert notes.get("edited").title == read
    assert memory_prompt(agent_memory=notes).encode()
    assert notes.update("edited", content="new").title == read
    assert notes.search("new")


def test_tags_written_by_hand_are_found_in_any_case_and_bounded(tmp_path: Path) -> None:
    notes = written(tmp_path / "notes", "Title", "Money, money, B-side")
    assert notes.get("edited").tags == ("money", "b-side")
    assert [note.id for note in notes.list(tags=["Money"])] == ["edited"]
    many = ", ".join(f"t{number}" for number in range(30))
    (tmp_path / "notes" / "many.md").write_text(OURS.format("Many", many))
    assert "at most 20 tags" in notes.get("many").fault
