"""What a journal keeps comes back as it was, and what cannot be read costs nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.pictures import picture
from web.chats.chat import Turn
from web.chats.journal.journal import (
    AnswerGiven,
    Attached,
    Entry,
    InputGiven,
    SpentBefore,
    StopAsked,
    TurnBegun,
    TurnSent,
    TurnTakenBack,
    entry_from_event,
    entry_to_event,
    is_journal,
    journal_of,
)
from web.chats.records.block_forms import without_bytes
from web.harness.values.events import Note, TextDelta
from web.harness.values.json_form import JsonRefused
from web.harness.values.messages import ImageBlock, ResourceBlock

FILE = ResourceBlock("notes.txt", "notes.txt", "text/plain", "some text", "file of this chat")
LARGE = ResourceBlock("big.bin", "big.bin", "application/octet-stream", "[big]", "", 12_000)
PICTURE = picture("plan.png", 40, 30)
TURN = Turn("r1", "hello\n**you**", "demo:demo", "q1", (FILE, LARGE))

ENTRIES: tuple[Entry, ...] = (
    TurnSent(TURN),
    TurnSent(replace(TURN, took=("a1", "a2"), draft="hello", at=2.5)),
    TurnBegun(TURN, 12.5, "r0"),
    TurnBegun(TURN, 12.5, retold=True),
    TurnTakenBack("r1"),
    Attached("a1", FILE),
    SpentBefore({"turns": 2, "usage": {}, "cost": None}),
    StopAsked("r1"),
    AnswerGiven("r1", "k", "allow_chat", {"path": "x"}, "because"),
    AnswerGiven("r1", "k", "deny", None, ""),
    InputGiven("r1", "k", "accept", {"name": "Ada"}),
    InputGiven("r1", "k", "decline", None),
)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_every_entry_comes_back_as_it_was(entry: Entry) -> None:
    assert entry_from_event(entry_to_event(entry)) == entry


def test_a_picture_comes_back_by_its_name_and_without_its_bytes() -> None:
    event = entry_to_event(Attached("a1", PICTURE))
    assert isinstance(event, Note)
    assert len(event.detail) < 400
    back = entry_from_event(event)
    assert isinstance(back, Attached)
    assert isinstance(back.block, ImageBlock)
    assert back.block == without_bytes(PICTURE)
    assert back.block.data == b""
    assert back.block.length == len(PICTURE.data)


def test_an_entry_of_a_later_version_is_passed_over() -> None:
    assert entry_from_event(Note("moved", "{}")) is None
    assert entry_from_event(TextDelta("x", "m")) is None


@pytest.mark.parametrize(
    "event",
    [
        Note("sent", "no JSON"),
        Note("sent", "[]"),
        Note("sent", "{}"),
        Note("begun", '{"turn": {"run_id": 1}, "at": 1}'),
        Note("answer", '{"run_id": "r", "key": "k", "decision": "maybe", "arguments": null}'),
        Note("attached", '{"id": "a", "block": {"type": "video"}}'),
    ],
    ids=lambda event: event.detail,
)
def test_an_entry_that_is_broken_is_refused(event: Note) -> None:
    with pytest.raises(JsonRefused):
        entry_from_event(event)


def test_journals_are_told_from_runs() -> None:
    assert is_journal(journal_of("c1"))
    assert not is_journal("c1")
