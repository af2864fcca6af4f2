"""Every example runs as it stands, as a program of its own, without a key."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import environment

CHECKOUT = Path(__file__).parent.parent
EXAMPLES = sorted((CHECKOUT / "tests" / "examples").glob("*.py"))

SAYS: dict[str, tuple[str, ...]] = {
    "approvals": (
        "asked: send_letter {'to': 'Ana', 'text': 'See you on Monday'}",
        "result: sent to Ana: See you on Tuesday",
        "Only Ana gets letters.",
        "allowed for the whole conversation: ['send_letter']",
        "nobody to ask: True",
    ),
    "condensing": (
        "condensed from about",
        "pinned and kept: True",
        "learned: 8192 tokens",
        "cleared by hand: True",
    ),
    "custom_store": ("hello 1 False", "['s']"),
    "custom_backend": ("['completed', 'completed']",),
    "durable_run": (
        "ended with -9",
        "waiting: approval_required",
        "sent to Ana: See you",
    ),
    "hooks": (
        "hook: add returned 42",
        "hook: calls_so_far returned 1 calls so far",
        "hook: the run is completed",
        "to be saved: {'stopwatch': {'calls': 2}}",
        "stopwatch: closed after 2 calls",
    ),
    "memory_tools": ("The deadline is in June", "analyzes invoices"),
    "snapshots": (
        "user: Remember that this project analyzes invoices.",
        "tokens are counted on: True",
        "its extension goes on: 2 questions",
        "other limits: The configuration that is given differs from the saved one in: "
        "limits.max_iterations",
        "edited: This snapshot cannot be used. It was changed after it was saved",
        "no such id: '../elsewhere' cannot be the id of a session.",
        "cannot be saved: metadata.opened is a datetime, which JSON cannot hold.",
    ),
    "subagents": (
        "bookkeeper {'task': '/total march'}",
        "    total {'month': 'march'}",
        "    -> 1,240.50",
        "with the sub-agent: True, $0.00",
        "[x] read the invoices [>] add them up [ ] write it down",
        "[x] read the invoices [x] add them up [x] write it down",
    ),
}
"""By the name of an example, what it prints among other things."""

LEFT = {".agent_runtime"}
"""What an example may leave where it was started: git ignores it."""

QUICK = ("custom_store", "snapshots")
"""The examples that each run starts; the others are started in the long form."""


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(each, marks=() if each.stem in QUICK else pytest.mark.full, id=each.stem)
        for each in EXAMPLES
    ],
)
def test_an_example_runs_and_says_what_it_is_about(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert {path.name for path in tmp_path.iterdir()} <= LEFT
    for words in SAYS.get(example.stem, ()):
        assert words in done.stdout


def test_every_promised_example_is_there() -> None:
    assert set(SAYS) <= {path.stem for path in EXAMPLES}


def test_what_readme_shows_of_the_library_is_a_piece_of_an_example() -> None:
    readme = (CHECKOUT / "README.md").read_text()
    library = readme[readme.index("Each of the programs") :]
    pieces = re.findall(r"```python\n(.*?)```", library, re.S)
    shown = [piece.partition("\n") for piece in pieces if "def shout" not in piece]
    assert len(shown) > 6
    programs = {
        f"# tests/examples/{path.name}": without_layout(path.read_text()) for path in EXAMPLES
    }
    assert [
        piece for name, _, piece in shown if without_layout(piece) not in programs.get(name, "")
    ] == []


def without_layout(code: str) -> str:
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())
