"""The layers hold, and the linter that says so would notice if they did not."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import web.harness
from tests.support.environment import CHECKOUT, environment
from tests.support.processes import run_code

LINTER = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINTER, "--no-logo", "--no-cache"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_contract_is_kept() -> None:
    done = lint(CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr


UNPLACED = [
    ("web/unplaced.py", "", "web.unplaced"),
    ("web/harness/unplaced.py", "", "web.harness.unplaced"),
    ("web/chats/unplaced.py", "", "web.chats.unplaced"),
    ("web/ui/unplaced.py", "", "web.ui.unplaced"),
]
BREACHES = [
    ("web/chats/runs/wrong_1.py", "import web.ui", "web.chats.runs.wrong_1 -> web.ui"),
    ("web/chats/parts/wrong_2.py", "import starlette", "wrong_2 -> starlette"),
    ("web/chats/runs/wrong_10.py", "import web.chats.storage", "wrong_10 -> web.chats.s"),
    ("web/harness/tools/wrong_3.py", "import web.chats", "web.harness.tools.wrong_3 -> web.chats"),
    ("web/harness/tools/wrong_4.py", "import web.harness.agent", "wrong_4 -> web.harness.agent"),
    ("web/harness/tools/wrong_5.py", "import jinja2", "web.harness.tools.wrong_5 -> jinja2"),
    ("web/harness/loop/wrong_6.py", "import time", "web.harness.loop.wrong_6 -> time"),
    ("web/harness/values/wrong_7.py", "import os.path", "web.harness.values.wrong_7 -> os"),
    ("web/ui/api/wrong_8.py", "import asyncpg", "web.ui.api.wrong_8 -> asyncpg"),
    ("web/ui/pages/wrong_9.py", "from web.harness import Limits", "wrong_9 -> web.harness"),
    ("web/ui/layouts/wrong_11.py", "import web.ui.files", "wrong_11 -> web.ui.files"),
]


@pytest.mark.parametrize("wrong", [UNPLACED, BREACHES], ids=["a place", "an import"])
def test_each_breach_is_found(tmp_path: Path, wrong: list[tuple[str, str, str]]) -> None:
    shutil.copytree(
        CHECKOUT / "web", tmp_path / "web", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    for module, code, _ in wrong:
        (tmp_path / module).write_text(f"{code}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stderr
    assert [found for *_, found in wrong if found not in done.stdout] == []


def test_importing_the_library_loads_nothing_else() -> None:
    script = (
        "import sys, time\n"
        "before = set(sys.modules)\n"
        "start = time.process_time()\n"
        "import web.harness\n"
        "took = time.process_time() - start\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(took, *sorted(new - sys.stdlib_module_names))"
    )
    shortest = 1.0
    for _ in range(3):
        done = run_code(script)
        took, *loaded = done.stdout.split()
        assert loaded == ["web"]
        shortest = min(shortest, float(took))
    assert shortest < 0.15


def test_the_library_gives_every_name_it_lists() -> None:
    for name in web.harness.__all__:
        value = getattr(web.harness, name)
        # A full name may be another one of the same thing.
        short = name.replace("Harness", "")
        assert getattr(value, "__name__", name) in (name, short, "UnionType")
    assert set(web.harness.__all__) <= set(dir(web.harness))


def test_type_checkers_see_the_names_that_the_library_gives() -> None:
    tree = ast.parse(Path(str(web.harness.__file__)).read_text())
    typed = {
        (statement.module, alias.asname)
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    given = {(module, name) for module, names in web.harness._NAMES.items() for name in names}
    assert typed == given


def test_a_name_that_the_library_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = web.harness.frobnicate
