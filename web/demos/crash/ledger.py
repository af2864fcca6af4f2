"""The book in which each tool of the demo writes down that it begins, before it does anything."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ledger:
    """A file with a line for each time that a tool began: its name and the key of the call.

    A process that is killed leaves it whole: a line is one write to the system.
    """

    path: Path

    def note(self, name: str, key: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(os.open(self.path, flags, 0o600), "ab", buffering=0) as file:
            file.write(f"{name} {key}\n".encode())

    def began(self) -> Counter[tuple[str, str]]:
        """How often each call began, by name and key."""
        if not self.path.exists():
            return Counter()
        lines = (line.split(" ", 1) for line in self.path.read_text().splitlines())
        return Counter((name, key) for name, key in lines)
