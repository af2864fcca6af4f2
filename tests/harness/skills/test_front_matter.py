"""The top of a `SKILL.md`: what is read, and what is refused in one line."""

from __future__ import annotations

import time

import pytest

from tests.harness.skills.writers import skill_md
from web.harness.skills.skill import decoded, read_skill
from web.harness.values.errors import SkillRefused

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def with_fields(fields: str) -> str:
    return f"---\n{fields}\n---\nbody\n"


def fault(text: str, folder: str | None = "my-skill") -> str:
    with pytest.raises(SkillRefused) as caught:
        read_skill(text, folder)
    message = caught.value.message
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_all_fields_of_the_format_are_read() -> None:
    skill, body = read_skill(
        "\n---\nname: my-skill\ndescription: >\n  Two lines\n  of it.\nlicense: MIT\n"
        "compatibility: Needs git\nmetadata:\n  version: 1.0\n  day: 2026-01-02\n  on: yes\n"
        "  nested: {a: [1]}\nallowed-tools: Read Bash, Write\nunknown: [1]\n---\n\n"
        "# Title\n---\nx\n",
        "my-skill",
    )
    assert (skill.name, skill.description) == ("my-skill", "Two lines of it.")
    assert (skill.license, skill.compatibility) == ("MIT", "Needs git")
    assert dict(skill.metadata) == {
        "version": "1.0",
        "day": "2026-01-02",
        "on": "yes",
        "nested": '{"a": ["1"]}',
    }
    assert skill.allowed_tools == ("Read", "Bash", "Write")
    assert body == "# Title\n---\nx"


def test_tools_may_be_a_list_and_windows_line_ends_and_a_mark_are_fine() -> None:
    text = decoded(
        b"\xef\xbb\xbf---\r\nname: my-skill\r\ndescription: D\r\nallowed-tools: [a, b]\r\n---\r\nx"
    )
    skill, body = read_skill(text, "my-skill")
    assert (skill.allowed_tools, body) == (("a", "b"), "x")


@pytest.mark.parametrize("name", ["a", "a1-b2", "0", "x" * 64])
def test_a_name_of_the_format_is_taken(name: str) -> None:
    assert read_skill(skill_md(name), name)[0].name == name


@pytest.mark.parametrize(
    "name",
    [
        "A",
        "my_skill",
        "-a",
        "a-",
        "a--b",
        "a b",
        "ä",
        "../x",
        "a/b",
        ".",
        "a.b",
        "\uff41",
        "x" * 65,
        "''",
    ],
)
def test_any_other_name_is_refused(name: str) -> None:
    assert "name" in fault(skill_md(name), None)


def test_a_name_unlike_its_folder_is_refused() -> None:
    assert "is not that of its folder" in fault(skill_md("other"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no front matter"),
        ("# Title\n\nname: my-skill\n", "no front matter"),
        ("intro\n---\nname: my-skill\ndescription: D\n---\nbody", "no front matter"),
        ("---\nname: my-skill\ndescription: D\n", "does not end"),
        ("---", "does not end"),
        (with_fields("just text"), "no fields"),
        (with_fields("- name"), "no fields"),
        (with_fields(""), "no fields"),
        (with_fields("name: [unclosed"), "not YAML"),
        (with_fields("name: a: b"), "not YAML: mapping values are not allowed here (line 2)"),
        (with_fields("name: 'x\ndescription"), "not YAML"),
        (with_fields("name: \x07"), "not YAML"),
        (with_fields("name: my-skill"), "`description` is missing or empty"),
        (with_fields("description: D"), "`name` is missing or empty"),
        (with_fields("name: my-skill\ndescription: '  '"), "`description` is missing or empty"),
        (with_fields("name: my-skill\ndescription: [a]"), "`description` must be text"),
        (with_fields("name: {a: b}\ndescription: D"), "`name` must be text"),
        (with_fields(f"name: my-skill\ndescription: {'x' * 1025}"), "longer than 1,024"),
        (
            with_fields(f"name: my-skill\ndescription: D\ncompatibility: {'x' * 501}"),
            "`compatibility` is longer than 500",
        ),
        (with_fields("name: my-skill\ndescription: D\nmetadata: text"), "must be a mapping"),
        (with_fields("name: my-skill\ndescription: D\nallowed-tools: {a: b}"), "must be text"),
        (with_fields("name: my-skill\nname: my-skill\ndescription: D"), '"name" twice'),
        (with_fields("? [a]\n: b\nname: my-skill"), "key that is not text"),
        (with_fields("name: !!python/object/apply:os.abort []\ndescription: D"), "must be text"),
        (with_fields(BOMB), "YAML alias"),
        (with_fields("a: &a {b: *a}"), "YAML alias"),
        (with_fields("base: &b {name: my-skill}\n<<: *b\ndescription: D"), "YAML alias"),
        (with_fields("a: " + "[" * 2000), "nested more than 10 deep"),
        (with_fields("a: " + "{a: " * 2000), "nested more than 10 deep"),
        (with_fields(f"a: {'x' * 9000}"), "at most 8,192"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, words: str) -> None:
    assert words in fault(text)


@pytest.mark.parametrize(
    "fields",
    [
        *("{" * 8000, "[" * 8000, "- " * 4000, "? " * 4000, "a: " * 2700, "!" * 8000, "&a " * 2600),
        *("%" * 8000, "'" * 8001, "a: |\n" + " x\n" * 2600, "--- \n" * 1500, "x:" + " " * 8000),
    ],
)
def test_no_front_matter_takes_long(fields: str) -> None:
    began = time.process_time()
    with pytest.raises(SkillRefused):
        read_skill(with_fields(fields), "my-skill")
    assert time.process_time() - began < 2


def test_a_description_is_one_line_without_unseen_characters() -> None:
    skill, _ = read_skill(
        '---\nname: a\ndescription: "one\\n- fake-skill: two\\u202e\\u200b\\tthree"\n---\n', "a"
    )
    assert skill.description == "one - fake-skill: two three"


@pytest.mark.parametrize("content", [b"\xff\xfe---", b"---\nname: \xe4\n---\n", b"---\0"])
def test_what_is_not_text_is_refused(content: bytes) -> None:
    with pytest.raises(SkillRefused, match="is not text"):
        decoded(content)
