"""A process that writes notes and facts, and tells of each change before and after it.

`python -m tests.support.memory_writer FOLDER NAME COUNT` makes COUNT changes; NAME is in everything
it writes. Every third changes what the first one made.
"""

from __future__ import annotations

import sys
from pathlib import Path

from web.harness.memory.facts import LongTermMemory
from web.harness.memory.notes import AgentMemory


def content(name: str, number: int) -> str:
    """What a change writes: of some length, with its number at both ends."""
    return f"{name} {number} begins\n{'word ' * (number * 7919 % 3000)}\n{name} {number} ends"


def main(folder: Path, name: str, count: int) -> None:
    notes, facts = AgentMemory(folder), LongTermMemory(folder)
    first_note = first_fact = ""
    for number in range(count):
        text = content(name, number)
        print("begins", number, flush=True)
        if not first_note:
            first_note = notes.save(f"{name} {number}", text, tags=[name])
            first_fact = facts.save(f"{name} {number}", category=name)
        elif number % 3:
            notes.save(f"{name} {number}", text, tags=[name])
            facts.save(f"{name} {number}", category=name)
        else:
            notes.update(first_note, content=text)
            facts.update(first_fact, f"{name} {number}")
        print("done", number, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
