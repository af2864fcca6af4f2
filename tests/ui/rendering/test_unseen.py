"""Where a person decides, characters that are not drawn are spelled out, and none is lost."""

from __future__ import annotations

import html
import json
import re
import sys
import time
import unicodedata

import pytest

from tests.ui.elements import call, render_plainly, show
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.kinds import Input, Proposal, Question
from web.chats.parts.links import shown_address
from web.harness.tools.forms import read_form
from web.paths import templates_dir
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.templating import make_environment
from web.ui.rendering.unseen import exact_json, hides, spelled, visible

CATEGORIES: dict[str, str] = {}
for one in map(chr, range(sys.maxunicode + 1)):
    if (category := unicodedata.category(one)) not in ("Cn", "Co", "Lo"):
        CATEGORIES[category] = CATEGORIES.get(category, "") + one
BLANKS = CATEGORIES["Zs"]
# Default_Ignorable_Code_Point of the Unicode standard, first and last of each range.
IGNORABLE = """
ad 34f 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 fe00-fe0f feff ffa0
fff0-fff8 1bca0-1bca3 1d173-1d17a e0000-e0fff
"""
# Drawn without a trace in Chromium with the fonts of a plain Debian, or blank by name.
EMPTY = "\u2028\u2029\x85\u2800\ufff9\ufffa\ufffb\ufffc\U00013441\U00013442\U00016fe4\U0001d159"
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


def ignorable() -> str:
    ranges = [[int(end, 16) for end in each.split("-")] for each in IGNORABLE.split()]
    return "".join(chr(code) for ends in ranges for code in range(ends[0], ends[-1] + 1))


def test_nothing_that_is_drawn_as_nothing_stays() -> None:
    chars = ignorable() + EMPTY
    assert len(chars) > 4_000
    for one_line in (False, True):
        assert spelled("a".join(chars), one_line) == "a".join(map(mark, chars))


def test_a_text_of_very_many_hidden_characters_takes_no_time() -> None:
    text = "".join(map(chr, range(0xE000, 0xF8FF))) * 3
    begun = time.process_time()
    assert len(spelled(text)) == 8 * len(text)
    assert time.process_time() - begun < 2


def test_all_controls_formats_and_separators_of_lines_are_spelled_out() -> None:
    chars = "".join(CATEGORIES[each] for each in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    chars = chars.replace("\n", "").replace("\t", "")
    assert len(chars) > 2_000
    assert spelled("a".join(chars)) == "a".join(map(mark, chars))


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
def test_no_blank_pushes_the_rest_away(blank: str) -> None:
    assert len(BLANKS) >= 17
    assert spelled(f"a{blank * 450}b") == "a⟨450 blanks⟩b"
    assert spelled("a\n" + f"{blank}\n" * 300 + "b") == "a⟨301 line ends⟩\nb"
    assert spelled("a" + (" " * 40 + blank + "\t") * 9 + "b") == "a⟨378 blanks⟩b"
    assert spelled("a\r\n" + f"{blank}\r\n" * 300 + " b") == "a⟨301 line ends⟩\n b"
    assert spelled(f"a{blank}b") == f"a{blank}b"


def test_wide_blanks_count_for_more() -> None:
    assert spelled("a" + "\t" * 10 + "b") == "a" + "\t" * 10 + "b"
    assert spelled("a" + "\t" * 11 + "b") == "a⟨11 blanks⟩b"
    assert spelled("a" + "\u3000" * 21 + "b") == "a⟨21 blanks⟩b"


def test_many_alike_are_counted() -> None:
    assert spelled("a" + "\xa0" * 450 + "b", one_line=True) == "a⟨450 times U+00A0⟩b"
    assert spelled("a" + "\u200b" * 3 + "b") == "a" + mark("\u200b") * 3 + "b"
    assert spelled("❤" + "\ufe0f" * 400) == "❤⟨400 times U+FE0F⟩"


def test_marks_upon_one_letter_are_few() -> None:
    few = "Vie\u0302\u0301t \u1000\u103c\u103d\u103e\u1031\u1037 \u0e01\u0e34\u0e48"
    assert spelled(few) == few
    pairs = "a" + "\u0301\u0327" * 150 + "\nb"
    assert spelled(pairs) == "a\u0301\u0327\u0301\u0327\u0301⟨295 combining marks⟩\nb"
    marks = "".join(CATEGORIES[each] for each in ("Mn", "Mc", "Me"))
    marks = "".join(set(marks) - set(ignorable() + EMPTY))
    assert len(marks) > 1_900
    assert spelled(marks).endswith("combining marks⟩")
    assert hides([pairs])
    assert json.loads(exact_json(pairs)) == pairs
    assert "\u0301" not in exact_json(pairs)


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


def test_no_name_or_path_turns_the_words_around_it() -> None:
    turning = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    turned = f"a{turning}\u05d0"
    preview = {"kind": "diff", "path": turned, "note": "", "lines": []}
    asking = call("asking", name=turned, arguments={turned: 1}, question=Question("k", preview))
    page = re.sub("<textarea.*?</textarea>", "", shown(asking), flags=re.S)
    page = re.sub(' title="[^"]*"', "", page)
    assert not re.search(f"[{turning}]", page)
    # Of a path in Hebrew letters the end stays where it is, and so does what follows it.
    assert '<code dir="ltr">a' in page
    assert '<dt dir="ltr">a' in page


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
