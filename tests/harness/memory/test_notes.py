"""Notes: kept, changed, written by hand, and never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from web.harness.memory.limits import MemoryLimits
from web.harness.memory.notes import AgentMemory
from web.harness.values.errors import LimitExceeded, MemoryRefused, NotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def notes(folder: Path) -> AgentMemory:
    return AgentMemory(storage_dir=folder)


def test_a_note_is_kept_as_one_markdown_file_that_a_person_can_read(
    folder: Path, notes: AgentMemory
) -> None:
    id = notes.save("Invoices: how", "# They come\n\nby *mail*.", tags=["Project X", "#money"])
    text = (folder / f"{id}.md").read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    assert id == "invoices-how"
    assert head.splitlines()[:2] == ['title: "Invoices: how"', "tags: [project-x, money]"]
    assert [line.split(":")[0] for line in head.splitlines()[2:]] == ["created", "updated"]
    assert body == "\n# They come\n\nby *mail*.\n"


def test_nothing_is_written_before_something_is_saved(folder: Path, notes: AgentMemory) -> None:
    assert notes.list() == []
    assert notes.search(query="anything") == []
    assert not folder.exists()


def test_what_is_saved_is_there_for_another_process_life(folder: Path, notes: AgentMemory) -> None:
    id = notes.save("Plan", "Ship it.", tags=["work"])
    note = AgentMemory(storage_dir=folder).get(id)
    assert (note.title, note.content, note.tags) == ("Plan", "Ship it.", ("work",))


@pytest.mark.parametrize(
    "title",
    [
        "yes",
        "1.0",
        "2026-01-02",
        "null",
        "- a list",
        "a: b # c",
        'say "it"',
        "back\\slash",
        "trailing:",
        "{a}",
        "[x]",
        "'quoted'",
        "&a *b !c |",
        "日本語のメモ",
        "emoji 🎉 and \u2028 line",
        "\x85\x80 odd",
        "---",
        "%directive",
        "@at `tick`",
    ],
)
def test_any_title_comes_back_as_it_was_by_both_ways_of_reading(
    folder: Path, notes: AgentMemory, title: str
) -> None:
    id = notes.save(title, "x", tags=["ja", "été", "2026"])
    kept = " ".join(title.split())
    assert AgentMemory(folder).get(id).title == kept
    # With a comment it is not the shape we write, and a YAML parser reads it.
    file = folder / f"{id}.md"
    file.write_text(file.read_text().replace("---\n", "---\n# by hand\n", 1))
    note = AgentMemory(folder).get(id)
    assert (note.title, note.tags, note.fault) == (kept, ("ja", "été", "2026"), "")


@pytest.mark.parametrize(
    "content", ["---\nnot: front matter\n---", "    code\nmore", "a\n\n\nb", "ends  \n\n x", "\0"]
)
def test_any_content_comes_back_as_it_was(folder: Path, notes: AgentMemory, content: str) -> None:
    id = notes.save("Title", content)
    assert AgentMemory(folder).get(id).content == content.rstrip()


def test_two_notes_of_one_title_stand_side_by_side(notes: AgentMemory) -> None:
    ids = [notes.save("Same", f"number {number}") for number in range(3)]
    assert ids == ["same", "same-2", "same-3"]
    assert [notes.get(id).content for id in ids] == ["number 0", "number 1", "number 2"]


def test_a_name_that_differs_in_case_alone_is_taken_for_the_same(
    folder: Path, notes: AgentMemory
) -> None:
    folder.mkdir()
    (folder / "Same.md").write_text("by hand")
    assert notes.save("same", "x") == "same-2"
    assert notes.get("Same").content == "by hand"


def test_an_update_changes_what_is_given_and_keeps_the_rest(notes: AgentMemory) -> None:
    id = notes.save("Plan", "old", tags=["a"])
    assert notes.update(id, content="new").content == "new"
    assert notes.update(id, title="Other").title == "Other"
    note = notes.update(id, tags=["b", "B"])
    assert (note.id, note.title, note.content, note.tags) == (id, "Other", "new", ("b",))


def test_what_a_person_added_to_a_file_outlives_an_update(folder: Path, notes: AgentMemory) -> None:
    folder.mkdir()
    (folder / "hand.md").write_text(
        "---\n# mine\ntitle: 'By hand'\ntags:\n  - one\n  - two\nsource: [a, b]\n---\nold\n"
    )
    assert notes.get("hand").tags == ("one", "two")
    notes.update("hand", content="new")
    text = (folder / "hand.md").read_text()
    assert "# mine\nsource: [a, b]\n---\n\nnew\n" in text
    note = AgentMemory(folder).get("hand")
    assert (note.title, note.tags, note.content) == ("By hand", ("one", "two"), "new")


def test_an_update_of_what_was_changed_meanwhile_is_refused(
    folder: Path, notes: AgentMemory
) -> None:
    id = notes.save("Plan", "one")
    seen = notes.get(id).digest
    AgentMemory(folder).update(id, content="two")
    with pytest.raises(MemoryRefused) as caught:
        notes.update(id, content="three", seen=seen)
    assert caught.value.code == "memory_changed"
    assert notes.get(id).content == "two"
    assert notes.update(id, content="three", seen=notes.get(id).digest).content == "three"


def test_the_one_changed_last_is_listed_first_and_tags_narrow(folder: Path) -> None:
    times = iter(range(1_000, 2_000))
    notes = AgentMemory(folder, now=lambda: float(next(times)))
    first, second = notes.save("First", "x", tags=["a", "b"]), notes.save("Second", "x", tags=["a"])
    assert [info.id for info in notes.list()] == [second, first]
    notes.update(first, content="y")
    assert [info.id for info in notes.list()] == [first, second]
    assert [info.id for info in notes.list(tags=["A", "b"])] == [first]
    assert [note.id for note in notes.search("x y first second", tags=["b"])] == [first]


def test_a_deleted_note_is_gone_from_the_disk_and_can_be_brought_back(
    folder: Path, notes: AgentMemory
) -> None:
    id = notes.save("Plan", "Ship it.")
    before = (folder / f"{id}.md").read_bytes()
    deleted = notes.delete(id)
    assert notes.list() == []
    assert notes.search("ship") == []
    assert [path.name for path in folder.iterdir()] == [".notes.lock"]
    with pytest.raises(NotFound):
        notes.get(id)
    assert notes.restore(deleted) == id
    assert (folder / f"{id}.md").read_bytes() == before
    assert notes.restore(deleted) == "plan-2"


def test_what_was_changed_by_hand_is_found_at_the_next_call(
    folder: Path, notes: AgentMemory
) -> None:
    id = notes.save("Plan", "about apples")
    version = notes.look()
    file = folder / f"{id}.md"
    for fruit in ("grapes", "lemons", "melons", "cherry", "quince"):
        # Of the same length, at once, in its place: only the time of the file tells.
        file.write_text(f"about {fruit}")
        assert [note.content for note in notes.search(fruit)] == [f"about {fruit}"]
        assert notes.look() > version
        version = notes.look()
    (folder / "new.md").write_text("# A heading\n\nabout plums")
    assert [note.title for note in notes.search("plums")] == ["A heading"]
    file.unlink()
    assert [info.id for info in notes.list()] == ["new"]
    assert notes.search("quince") == []


def test_looking_tells_nothing_new_where_nothing_changed(folder: Path, notes: AgentMemory) -> None:
    id = notes.save("Plan", "x")
    version = notes.look()
    os.utime(folder / f"{id}.md")
    notes.search("x")
    notes.get(id)
    assert notes.look() == version


BROKEN = {
    "open": b"---\ntitle: x\nnever ends",
    "yaml": b"---\ntitle: [a\n---\nx",
    "bytes": b"\xff\xfe\x00x",
    "alias": b"---\na: &a [x]\nb: *a\n---\nx",
    "tags": b"---\ntags: {a: b}\n---\nx",
    "title": b"---\ntitle: [a]\n---\nx",
    "large": b"x" * 1_000_001,
}


def test_a_broken_note_is_listed_with_its_fault_and_harms_no_other(
    folder: Path, notes: AgentMemory
) -> None:
    good = notes.save("Good", "apples")
    for name, data in BROKEN.items():
        (folder / f"{name}.md").write_bytes(data)
    (folder / "away.md").symlink_to("/etc/passwd")
    (folder / "inner.md").mkdir()
    listed = {info.id: info for info in notes.list()}
    assert listed.keys() == {*BROKEN, "away", "inner", good}
    for id, info in listed.items():
        assert bool(info.fault) is (id != good)
        assert "\n" not in info.fault
    assert [note.id for note in notes.search("apples x a")] == [good]
    with pytest.raises(MemoryRefused, match="cannot be read"):
        notes.update("yaml", content="new")
    assert (folder / "yaml.md").read_bytes() == BROKEN["yaml"]
    assert notes.restore(notes.delete("yaml")) == "yaml"
    assert (folder / "yaml.md").read_bytes() == BROKEN["yaml"]


@pytest.mark.parametrize("day", ["9999-12-31T23:59:59-12:00", "0001-01-01", "yesterday", "[1]"])
def test_odd_times_are_left_out_and_an_update_goes_on(
    folder: Path, notes: AgentMemory, day: str
) -> None:
    folder.mkdir()
    file = folder / "odd.md"
    file.write_text(f"---\ntitle: Odd\ncreated: {day}\nupdated: {day}\n---\nx")
    os.utime(file, (-(10**6), -(10**6)))
    note = notes.get("odd")
    assert (note.fault, note.created, note.updated) == ("", 0.0, 0.0)
    assert notes.update("odd", content="new").updated > 0


def test_a_link_is_removed_and_what_it_leads_to_stays(
    tmp_path: Path, folder: Path, notes: AgentMemory
) -> None:
    folder.mkdir()
    target = tmp_path / "elsewhere.md"
    target.write_text("secret")
    (folder / "link.md").symlink_to(target)
    note = notes.get("link")
    assert "link" in note.fault
    assert "secret" not in note.content
    deleted = notes.delete("link")
    assert target.read_text() == "secret"
    with pytest.raises(NotFound):
        notes.restore(deleted)


@pytest.mark.parametrize(
    "id", ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a\0b", "x" * 253, "\ud800"]
)
def test_no_id_leads_out_of_the_folder(tmp_path: Path, notes: AgentMemory, id: str) -> None:
    notes.save("x", "x")
    (tmp_path / "x.md").write_text("outside")
    for attempt in (notes.get, notes.delete, notes.update):
        with pytest.raises(NotFound):
            attempt(id)
    assert (tmp_path / "x.md").read_text() == "outside"


def test_other_files_of_the_folder_are_left_alone(folder: Path, notes: AgentMemory) -> None:
    folder.mkdir()
    (folder / "facts.jsonl").write_text("")
    (folder / "readme.txt").write_text("x")
    (folder / ".hidden.md").write_text("x")
    (folder / "inner").mkdir()
    (folder / "inner" / "x.md").write_text("x")
    id = notes.save("One", "x")
    assert [info.id for info in notes.list()] == [id]


def test_limits_are_told_and_nothing_is_lost(folder: Path) -> None:
    notes = AgentMemory(folder, limits=MemoryLimits(max_notes=2, max_note_chars=10))
    with pytest.raises(LimitExceeded, match="at most 10"):
        notes.save("Long", "x" * 11)
    with pytest.raises(MemoryRefused, match="title"):
        notes.save(" \n ", "x")
    with pytest.raises(MemoryRefused, match="text"):
        notes.save("Title", " \n ")
    with pytest.raises(LimitExceeded, match="200"):
        notes.save("x" * 201, "x")
    with pytest.raises(LimitExceeded, match="20 tags"):
        notes.save("x", "x", tags=[f"tag{number}" for number in range(21)])
    assert notes.list() == []
    first = notes.save("One", "x")
    notes.save("Two", "x")
    with pytest.raises(LimitExceeded, match="the limit"):
        notes.save("Three", "x")
    with pytest.raises(LimitExceeded):
        notes.update(first, content="x" * 11)
    assert notes.get(first).content == "x"


def test_half_a_character_of_a_model_is_kept_as_a_mark(folder: Path, notes: AgentMemory) -> None:
    id = notes.save("half \ud83d", "half \udc00")
    assert AgentMemory(folder).get(id).content == "half \ufffd"


def test_what_the_disk_refuses_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    notes = AgentMemory(tmp_path / "file" / "memory")
    with pytest.raises(MemoryRefused, match="cannot be used") as caught:
        notes.save("x", "x")
    assert caught.value.code == "memory_disk"
    with pytest.raises(MemoryRefused):
        notes.list()


def test_what_is_remembered_is_for_its_owner_alone(folder: Path, notes: AgentMemory) -> None:
    id = notes.save("x", "x")
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / f"{id}.md").stat().st_mode & 0o077 == 0
