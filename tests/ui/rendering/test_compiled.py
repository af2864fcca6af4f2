"""A template is compiled once by a process, and anew when its source is another."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from web.ui.rendering.compiled import CompiledTemplates


class Counting(Environment):
    """Counts how often a template is compiled."""

    compiled = 0

    def _generate(self, *given: object, **named: object) -> str:
        self.compiled += 1
        return super()._generate(*given, **named)  # type: ignore[arg-type]


@pytest.fixture
def environments(tmp_path: Path) -> list[Counting]:
    (tmp_path / "a.html").write_text("one")
    cache = CompiledTemplates()
    return [Counting(loader=FileSystemLoader(tmp_path), bytecode_cache=cache) for _ in range(3)]


def test_what_one_environment_compiled_another_one_uses(environments: list[Counting]) -> None:
    first, second, _ = environments
    assert first.get_template("a.html").render() == "one"
    assert second.get_template("a.html").render() == "one"
    assert (first.compiled, second.compiled) == (1, 0)


def test_a_template_that_changed_is_compiled_anew(
    environments: list[Counting], tmp_path: Path
) -> None:
    first, _, third = environments
    assert first.get_template("a.html").render() == "one"
    (tmp_path / "a.html").write_text("two")
    assert third.get_template("a.html").render() == "two"
