"""Filters put values into words, and whatever a template shows is escaped."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from jinja2 import Environment, UndefinedError
from markupsafe import Markup

from web.paths import templates_dir
from web.ui.rendering.templating import (
    ARGUMENT_LIMIT,
    BRIEF_LIMIT,
    brief,
    clock_in,
    cost,
    first_line,
    first_sentence,
    make_environment,
    model_label,
    pretty_json,
    seconds,
    size,
    thousands,
    time_in,
)

THIN = "\N{NARROW NO-BREAK SPACE}"


@pytest.fixture
def environment() -> Environment:
    return make_environment(templates_dir(), zone=UTC)


def test_values_are_escaped(environment: Environment) -> None:
    template = environment.from_string("<p title='{{ text }}'>{{ text }}</p>")
    assert template.render(text="'<b>&") == (
        "<p title='&#39;&lt;b&gt;&amp;'>&#39;&lt;b&gt;&amp;</p>"
    )


def test_a_filter_does_not_undo_the_escaping(environment: Environment) -> None:
    template = environment.from_string(
        "{{ value|json }}{{ value|brief }}{{ text|first_line }}{{ text|json }}"
    )
    html = template.render(value={"a": "<script>"}, text="<script>")
    assert "<" not in html
    assert html.count("&lt;script&gt;") == 4


def test_a_name_that_nobody_gave_is_an_error(environment: Environment) -> None:
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nobody }}").render()


def test_lines_of_statements_leave_nothing_in_the_html(tmp_path: Path) -> None:
    (tmp_path / "list.html").write_text(
        "{% for x in 'ab' %}\n  {% if x %}\n{{ x }}{% endif %}\n{% endfor %}\n"
    )
    assert make_environment(tmp_path).get_template("list.html").render() == "ab"


def test_a_time_is_absolute_for_programs_and_in_the_zone_for_people() -> None:
    shown = time_in(timezone(timedelta(hours=2)))(1_790_000_000)
    assert shown == Markup('<time datetime="2026-09-21T14:13:20+00:00">21 Sep 2026, 16:13</time>')


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "under 1 ms"),
        (0.0004, "under 1 ms"),
        (0.004, "4 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (2.06, "2.1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (185, "3 min 5 s"),
        (3599.7, "1 h"),
        (7440, "2 h 4 min"),
    ],
)
def test_a_duration_is_said_with_the_digits_that_matter(value: float, words: str) -> None:
    assert seconds(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 characters"),
        (1, "1 character"),
        (999, "999 characters"),
        (1240, "1.2 KB"),
        (9960, "10 KB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (3_400_000, "3.4 MB"),
    ],
)
def test_a_length_is_said_in_its_unit(value: int, words: str) -> None:
    assert size(value) == words


def test_json_is_indented_and_a_text_stays_as_it_is() -> None:
    assert pretty_json({"b": 1, "a": ["é"]}) == '{\n  "b": 1,\n  "a": [\n    "é"\n  ]\n}'
    assert pretty_json("two\nlines") == "two\nlines"


def test_json_beyond_its_limit_says_how_much_is_left_out() -> None:
    text = pretty_json("x" * (ARGUMENT_LIMIT + 1234), ARGUMENT_LIMIT)
    assert text == "x" * ARGUMENT_LIMIT + f"\n… 1{THIN}234 more characters"
    assert pretty_json("x" * ARGUMENT_LIMIT, ARGUMENT_LIMIT) == "x" * ARGUMENT_LIMIT


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, ""),
        ({"path": "a  b\n c"}, "a b c"),
        ({"by": "month", "limit": 2, "dry": False}, "by: month, limit: 2, dry: false"),
    ],
)
def test_arguments_fit_on_one_line(arguments: dict[str, object], line: str) -> None:
    assert brief(arguments) == line


def test_long_arguments_are_cut() -> None:
    line = brief({"content": "word " * 100_000})
    assert len(line) == BRIEF_LIMIT
    assert line.endswith("…")


def test_the_first_line_is_the_first_with_something_on_it() -> None:
    assert first_line("\n  \n one \ntwo") == "one"
    assert first_line("") == ""
    assert first_line("x" * 500, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Adds numbers. Understands e.g. pi.", "Adds numbers."),
        ("Waits, e.g. for\na file", "Waits, e.g. for\na file"),
        ("Lists files\n\nAll of them", "Lists files"),
        ("", ""),
    ],
)
def test_the_first_sentence_says_what_a_tool_does(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_numbers_are_grouped() -> None:
    assert thousands(12345) == f"12{THIN}345"
    assert thousands(999) == "999"


@pytest.mark.parametrize(
    ("dollars", "words"),
    [
        (0, "$0"),
        (0.00001, "under $0.0001"),
        (0.0042, "$0.0042"),
        (1.3, "$1.30"),
    ],
)
def test_a_cost_is_said_in_dollars(dollars: float, words: str) -> None:
    assert cost(dollars) == words


def test_a_clock_shows_the_minute_and_holds_the_whole_time() -> None:
    clock = clock_in(timezone(timedelta(hours=2)))
    assert clock(1_790_000_000) == '<time datetime="2026-09-21T14:13:20+00:00">16:13</time>'


def test_the_demo_models_are_told_from_real_ones() -> None:
    assert model_label("demo:demo") == "Demo (scripted, no key)"
    assert "8,192 tokens" in model_label("demo:small")
    assert model_label("openai:gpt-x") == "openai:gpt-x"
