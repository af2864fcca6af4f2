"""What the repository holds, and what it must not."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.support.environment import CHECKOUT

MAX_LINES = 420
CODE = {".py", ".js", ".css", ".html", ".sql"}
TOP_LEVEL = {
    *("pyproject.toml", "web", "templates", "static", "skills", "generated", "tests", "README.md"),
    *("LICENSE", "CHANGELOG.md", "Makefile", ".gitignore", ".gitattributes", ".ci"),
}
# Written so that the patterns do not find themselves.
HOSTS_AND_PATHS = re.compile(
    r"pypi[.]org|python[h]osted|npm[j]s[.]|deb[.]debian|registry[.]npm|/r[o]ot/|/w[o]rk/(?:main|shared)"
)
THIRD_PARTY = re.compile(
    r"[.]min[.](?:js|css)$|(?:^|/)(?:vendor|node_modules|third[-_]party)/|[.](?:woff2?|ttf|whl|so)$"
    r"|(?:^|/)htmx[^/]*[.]js$"
)


@cache
def files() -> tuple[str, ...]:
    """Paths of all files that are tracked or would be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return tuple(name for name in listed.stdout.splitlines() if (CHECKOUT / name).is_file())


def normal(name: str) -> str:
    """The name of a distribution in its one normal form, without versions and extras."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", name, maxsplit=1)[0]).lower()


def imported_modules(path: Path) -> set[str]:
    """Top-level names of all absolute imports in a file, those inside functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_the_top_level_holds_what_the_design_names() -> None:
    assert {name.partition("/")[0] for name in files()} - TOP_LEVEL == set()


def test_no_third_party_file_is_committed() -> None:
    assert [name for name in files() if THIRD_PARTY.search(name)] == []


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = [
        f"{name}: {match.group()}"
        for name in files()
        if (match := HOSTS_AND_PATHS.search((CHECKOUT / name).read_text(errors="replace")))
    ]
    assert found == []


def test_no_file_of_code_is_long() -> None:
    lengths = {
        name: len((CHECKOUT / name).read_text().splitlines())
        for name in files()
        if Path(name).suffix in CODE
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    # Which files may import what only an extra brings, tests/test_layers.py says.
    extras = project["optional-dependencies"]
    brought = [each for name, extra in extras.items() if name != "dev" for each in extra]
    declared = {normal(requirement) for requirement in [*project["dependencies"], *brought]}
    homes = packages_distributions()
    missing = {
        f"{name} imports {module}"
        for name in files()
        if name.startswith("web/") and name.endswith(".py")
        for module in imported_modules(CHECKOUT / name) - sys.stdlib_module_names - {"web"}
        if not declared & {normal(home) for home in homes.get(module, [])}
    }
    assert missing == set()


def test_every_dependency_has_its_reason() -> None:
    lines = (CHECKOUT / "pyproject.toml").read_text().splitlines()
    named = [line for line in lines if re.match(r'    "[\w.-]+[><=]', line)]
    assert named
    assert [line for line in named if not re.search(r",\s+# \w", line) and "dev]" not in line] == []


def test_generated_files_are_not_tracked() -> None:
    kept = {name for name in files() if name.startswith("generated/")}
    assert kept == {"generated/README.md", "generated/.gitignore"}


def test_the_script_of_the_build_can_be_run() -> None:
    assert os.access(CHECKOUT / ".ci" / "run", os.X_OK)
