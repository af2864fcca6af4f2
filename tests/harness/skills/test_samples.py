"""The skills that come with the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import CHECKOUT, environment
from web.harness.skills.folder import SkillFolder
from web.paths import sample_skills_dir

SCRIPT = CHECKOUT / "skills" / "csv-summary" / "scripts" / "summary.py"


def summary(folder: Path, content: str | bytes, *options: str) -> tuple[int, list[str]]:
    """The exit code, and what was said line by line, of a file in this folder."""
    path = folder / "data.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    done = subprocess.run(
        [sys.executable, SCRIPT, *options, "data.csv"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, (done.stdout or done.stderr).splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_samples_are_whole_and_say_when_to_use_them() -> None:
    folder = SkillFolder(sample_skills_dir(), origin="sample")
    found = folder.skills()
    assert [skill.name for skill in found] == ["csv-summary", "meeting-notes", "plain-language"]
    assert [skill.fault for skill in found] == [""] * 3
    for skill in found:
        assert "Use it when" in skill.description
        text = folder.read(skill.name)
        assert text.left_out == 0
        assert 500 < len(text.body) < 5_000
        for file in text.files:
            assert file.path in text.body, f"{skill.name} never tells of {file.path}"


def test_the_summary_tells_types_and_figures(tmp_path: Path) -> None:
    code, lines = summary(
        tmp_path,
        "name,price,day,note,name\npear,1.5,2026-01-02,,x\npear,3,2025-01-02,,x\nfig,,2026-03-31,,x\n",
    )
    assert (code, lines[0]) == (0, "data.csv: 3 rows, 5 columns")
    assert [cells(line) for line in lines[4:]] == [
        ["name", "text", "3", "2", "3 characters", "4 characters", "", "pear (2)"],
        ["price", "number", "2", "2", "1.5", "3", "2.25", ""],
        ["day", "date", "3", "3", "2025-01-02", "2026-03-31", "", ""],
        ["note", "empty", "0", "0", "", "", "", ""],
        ["name (2)", "text", "3", "1", "1 character", "1 character", "", "x (3)"],
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("n\n1,5\n", "number"),
        ("n\n1,5\n2.5\n", "text"),
        ("n;m\n1,5;x\n2;y\n", "number"),
        ("n;m\n1.234,5;x\n", "number"),
        ("n\n1e6\n-3\n.5\n", "number"),
        ('n\n"1,234.5"\n', "number"),
        ("n\n5 kg\n", "text"),
        ("n\n2026-02-30\n", "text"),
        ("n\n1e999\n", "number"),
        ("n\nnan\ninf\n", "text"),
    ],
)
def test_the_summary_knows_ways_of_writing_numbers(
    tmp_path: Path, content: str, expected: str
) -> None:
    options = ("--delimiter", ";") if ";" in content else ("--delimiter", "\t")
    code, lines = summary(tmp_path, content, *options)
    assert (code, cells(lines[4])[1]) == (0, expected)


def test_rows_that_do_not_fit_are_told_of_and_cells_stay_in_their_table(tmp_path: Path) -> None:
    code, lines = summary(tmp_path, 'a|b,"c\nd"\n1\n1,2,3\n\nx|y,x|y\n', "--delimiter", ",")
    assert code == 0
    assert lines[0] == "data.csv: 3 rows, 2 columns"
    assert lines[4].startswith(r"| a\|b | text | 3 |")
    assert lines[5].startswith("| c d |")
    assert [line for line in lines[6:] if line] == [
        "1 row has fewer values than the first line.",
        "1 row has more values than the first line.",
    ]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"", (), "the file is empty"),
        (b"\xff\xfea", (), "not text in UTF-8"),
        (b"a,b\n1,2\n", ("--columns", "c"), "there is no column c; there are a, b"),
    ],
)
def test_what_cannot_be_summarised_is_said(
    tmp_path: Path, content: bytes, options: tuple[str, ...], words: str
) -> None:
    code, lines = summary(tmp_path, content, *options)
    assert code == 1
    assert words in lines[-1]
