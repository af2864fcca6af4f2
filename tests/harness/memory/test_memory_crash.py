"""Processes that are killed while they write memories, and several that write at once."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.lock_holder import lock_held
from tests.support.memory_writer import content
from web.harness.memory.facts import LongTermMemory
from web.harness.memory.limits import MemoryLimits
from web.harness.memory.notes import AgentMemory
from web.harness.values.errors import MemoryRefused


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.memory_writer", str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed_once(folder: Path, name: str, chance: random.Random) -> int:
    """Kills a writer in the middle of a change; how many changes it had told to be done."""
    done = 0
    with writer(folder, name, 10_000) as process:
        assert process.stdout is not None
        last = chance.randrange(2, 15)
        for line in process.stdout:
            word, number = line.split()
            done += word == "done"
            if word == "begins" and int(number) == last:
                break
        # Somewhere in its next change.
        for _ in range(chance.randrange(200_000)):
            pass
        process.kill()
    return done


def checked(folder: Path, told: dict[str, int]) -> None:
    """All that was told to be done is there, and each note and fact is one whole state."""
    notes, facts = AgentMemory(folder), LongTermMemory(folder)
    assert facts.faults() == []
    kept: dict[str, set[int]] = {}
    for info in notes.list():
        assert info.fault == ""
        note = notes.get(info.id)
        found = re.match(r"(\w+) (\d+) begins", note.content)
        assert found is not None
        name, number = found[1], int(found[2])
        assert note.content == content(name, number)
        kept.setdefault(name, set()).add(number)
    texts = {fact.text for fact in facts.list()}
    for name, done in told.items():
        # The first note and fact hold the last of the changes that every third one is.
        own = {number for number in range(1, done) if number % 3}
        assert own <= kept[name]
        assert {f"{name} {number}" for number in own} <= texts
        changed = [number for number in range(done) if number % 3 == 0]
        assert max(number for number in kept[name] if number % 3 == 0) >= max(changed, default=0)


def killed_again_and_again(folder: Path, times: int) -> None:
    chance = random.Random(times)
    told = {f"run{turn}": killed_once(folder, f"run{turn}", chance) for turn in range(times)}
    checked(folder, told)
    AgentMemory(folder).save("last", "begins")
    LongTermMemory(folder).save("last")
    assert [path.name for path in folder.iterdir() if path.name.startswith(".new-")] == []


def test_a_writer_that_is_killed_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 4)


@pytest.mark.full
def test_many_writers_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 60)


def test_two_processes_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    count = 30
    both = [writer(tmp_path, name, count) for name in ("one", "two")]
    for process in both:
        assert process.communicate(timeout=60)
        assert process.returncode == 0
    notes, facts = AgentMemory(tmp_path), LongTermMemory(tmp_path)
    made = 1 + sum(1 for number in range(count) if number % 3)
    for name in ("one", "two"):
        assert len(notes.list(tags=[name])) == made
        assert len(facts.list(category=name)) == made
    assert facts.faults() == []


def test_threads_that_share_one_store_lose_nothing_of_each_other(tmp_path: Path) -> None:
    notes, facts = AgentMemory(tmp_path), LongTermMemory(tmp_path)

    def write(name: str) -> None:
        for number in range(5):
            notes.save("the same title", f"{name} {number}")
            facts.save(f"{name} {number}")
            assert notes.search(f"{name} {number}")
            assert facts.search(f"{name} {number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, ("one", "two", "three", "four")))
    assert len({notes.get(info.id).content for info in notes.list()}) == 20
    assert len({fact.text for fact in facts.list()}) == 20
    assert facts.faults() == []


def test_what_another_process_writes_is_found_at_once(tmp_path: Path) -> None:
    notes, facts = AgentMemory(tmp_path), LongTermMemory(tmp_path)
    notes.save("mine", "x")
    facts.save("mine")
    with writer(tmp_path, "other", 1) as process:
        assert process.wait(timeout=60) == 0
    assert [note.title for note in notes.search("other begins")] == ["other 0"]
    assert [fact.text for fact in facts.search("other")] == ["other 0"]


def test_a_folder_that_another_program_holds_is_told_of_within_seconds(tmp_path: Path) -> None:
    limits = MemoryLimits(busy_seconds=0.2)
    notes, facts = AgentMemory(tmp_path, limits=limits), LongTermMemory(tmp_path, limits=limits)
    notes.save("one", "x")
    with lock_held(tmp_path, ".notes.lock"), lock_held(tmp_path, ".facts.lock"):
        attempts: list[Callable[[], object]] = [
            lambda: notes.save("two", "x"),
            lambda: facts.save("x"),
        ]
        for attempt in attempts:
            with pytest.raises(MemoryRefused) as caught:
                attempt()
            assert caught.value.code == "memory_busy"
        # Reading waits for nobody.
        assert [info.title for info in notes.list()] == ["one"]
        assert facts.list() == []
    notes.save("two", "x")
    facts.save("x")


def test_who_waits_to_write_holds_up_nobody_who_reads(tmp_path: Path) -> None:
    notes, facts = AgentMemory(tmp_path), LongTermMemory(tmp_path)
    notes.save("one", "x")
    facts.save("one")
    with lock_held(tmp_path, ".notes.lock") as first, lock_held(tmp_path, ".facts.lock") as second:
        waiting = [
            threading.Thread(target=lambda: notes.save("two", "x")),
            threading.Thread(target=lambda: facts.save("two")),
        ]
        for thread in waiting:
            thread.start()
            thread.join(0.1)
            assert thread.is_alive()
        assert [note.title for note in notes.search("one")] == ["one"]
        assert [fact.text for fact in facts.search("one")] == ["one"]
        first.kill()
        second.kill()
        for thread in waiting:
            thread.join(10)
    assert len(notes.list()) == len(facts.list()) == 2
