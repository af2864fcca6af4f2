"""Where a person decides, characters that are not drawn are spelled out, and none is lost."""

from __future__ import annotations

import html
import json
import re

import pytest

from tests.ui.elements import call, render_plainly, show
from web.chats.kinds import Input, Proposal, Question
from web.chats.links import shown_address
from web.chats.parts import Channel, Clock
from web.harness.tools.forms import read_form
from web.paths import templates_dir
from web.ui.fragments import Fragments
from web.ui.templating import make_environment
from web.ui.unseen import exact_json, hides, spelled, visible

HIDDEN = ["\u202e", "\u200b", "\x1b", "\u2800", "\ud800", "\U000e0041", "\u2028", "\x85"]


def mark(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def shown(data: object) -> str:
    """The words of a part, and no less than they are in its HTML."""
    fragments = Fragments(make_environment(templates_dir()), render_plainly)
    return show(fragments, Channel("c1", Clock("e1")), data)  # type: ignore[arg-type]


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
def test_each_hidden_character_is_spelled_out(char: str) -> None:
    assert spelled(f"a{char}b") == f"a{mark(char)}b"
    assert hides({"deep": [f"a{char}b"]})
    assert visible(f"<{char}") == f'&lt;<span class="spelled">{mark(char)}</span>'


def test_a_command_has_no_line_ends_and_many_blanks_are_counted() -> None:
    assert spelled("a\nb\tc\xa0d", one_line=True) == "a⟨U+000A⟩b⟨U+0009⟩c⟨U+00A0⟩d"
    assert spelled("a" + " " * 3_000 + "b", one_line=True) == "a⟨3,000 blanks⟩b"


def test_ordinary_text_stays_as_it_is() -> None:
    text = "def f():\n\treturn 'é\xa0!'\r\n\n    # 👩\u200d🚀 ❤\ufe0f"
    assert spelled(text) == text
    assert not hides([text])


def test_a_long_text_cannot_push_the_rest_away() -> None:
    assert spelled("a" + "\n" * 500 + "b") == "a⟨500 line ends⟩\nb"
    assert spelled("a" + " " * 500 + "b") == "a⟨500 blanks⟩b"


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
def test_json_to_be_edited_has_escapes_and_the_same_value(char: str) -> None:
    value = {f"k{char}": [f"a{char}b", "line\n"]}
    text = exact_json(value)
    assert char not in text
    assert json.loads(text) == value


@pytest.mark.parametrize("char", ["\u202e", "\u200d", "\x1b", "\u2800", "\n"], ids=ascii)
def test_a_proposal_shows_exactly_what_will_run(char: str) -> None:
    text = f"a{char}b"
    page = shown(Proposal("p", "n", text, ("--safe", text), (text,), text))
    assert page.count(mark(char)) == 4
    assert f"a{char}b" not in page
    assert 'class="warn"' in page
    assert 'class="warn"' not in shown(Proposal("p", "n", "ls", ("-l",), (), "/"))


def test_an_approval_shows_exactly_what_the_call_is_given() -> None:
    text = "ls\u202e\u200b\x1b" + " " * 3_000 + "; rm"
    arguments = {"na\u200bme": text, "deep": {"k\u202e": [text]}}
    preview = {"kind": "diff", "path": "a\u202eb", "note": "", "lines": [["add", text]]}
    page = shown(call("asking", arguments=arguments, question=Question("k", preview)))
    assert not re.search(
        "[\u202e\u200b\x1b]| {99}", re.sub("<textarea.*?</textarea>", "", page, flags=re.S)
    )
    assert "⟨3,000 blanks⟩" in page
    assert "a<" in page
    assert 'class="warn"' in page
    area = re.search("<textarea[^>]*>(.*?)</textarea>", page, flags=re.S)
    assert area is not None
    assert not re.search("[\u202e\u200b\x1b]", area[1])
    assert json.loads(html.unescape(area[1])) == arguments


def test_arguments_beyond_those_shown_are_told() -> None:
    page = shown(
        call("asking", arguments={f"a{n}": n for n in range(45)}, question=Question("k", None))
    )
    assert "5 more are not shown here" in page


def test_a_question_of_a_server_hides_nothing() -> None:
    text = "a\u202e\u200bb"
    schema = {
        "properties": {
            "one": {"type": "string", "title": text, "description": text, "default": text},
            "two": {"type": "string", "title": text, "enum": ["x" + text]},
            "three": {"type": "array", "items": {"type": "string", "enum": ["x" + text]}},
        }
    }
    asked = Input("k", {}, text, text, read_form(schema))
    visit = Input("v", {}, "s", text, address=shown_address("https://a.example/x\u202e\u200by"))
    page = shown(call("running", inputs=(asked, visit)))
    # What is sent back stays as it was.
    page = re.sub(r' (value|href)="[^"]*"', "", page)
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert page.count("⟨U+202E⟩") >= 8
    assert page.count("spelled out here") == 2
