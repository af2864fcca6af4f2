"""Whose skills are whose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.harness.skills.writers import put, skill_md, uploaded
from web.harness.skills.library import SkillLibrary, Skills, identity_folder
from web.harness.skills.prompt import MAX_PROMPT_CHARS, skills_prompt
from web.harness.skills.skill import Skill
from web.harness.values.errors import HarnessError, NotFound, SkillRefused


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "data" / "skills"


@pytest.fixture
def library(own: Path, tmp_path: Path) -> SkillLibrary:
    put(tmp_path / "samples", "sample", skill_md("sample", body="sample"))
    return SkillLibrary(own, tmp_path / "samples")


def add(skills: Skills, name: str, body: str) -> None:
    skills.install([uploaded("x.md", skill_md(name, body=body))])


def listed(skills: Skills) -> list[tuple[str, str, bool]]:
    return [(skill.name, skill.origin, skill.writable) for skill in skills.list()]


def test_everybody_sees_the_servers_skills_and_the_samples(
    library: SkillLibrary, own: Path
) -> None:
    put(own, "own")
    expected = [("own", "server", False), ("sample", "sample", False)]
    assert listed(library.of("t", "ann")) == listed(library.of("t", "bob")) == expected


def test_no_identity_sees_the_uploads_of_another(library: SkillLibrary, own: Path) -> None:
    ann, bob = library.of("t", "ann"), library.of("t", "bob")
    add(ann, "private", "of ann")
    ann.delete("private")
    add(ann, "private", "of ann again")
    assert ("private", "upload", True) in listed(library.of("t", "ann"))
    for other in (bob, library.of("u", "ann"), library.of("", "tann")):
        assert "private" not in [skill.name for skill in other.list()]
        assert other.deleted() == ()
        looks: list[Callable[[], object]] = [
            partial(other.read, "private"),
            partial(other.read_file, "private", "SKILL.md"),
            partial(other.read_all, "private"),
            partial(other.read, f".of/{identity_folder('t', 'ann')}/private"),
            partial(other.edit, "private", skill_md("private")),
            partial(other.delete, "private"),
            partial(other.restore, "private"),
        ]
        for look in looks:
            with pytest.raises(NotFound):
                look()
    add(bob, "private", "of bob")
    assert ann.read("private").body == "of ann again"
    assert bob.read("private").body == "of bob"


def test_identities_that_read_alike_have_folders_of_their_own() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ('a","b', "c"), ("a", 'b","c')]
    assert len({identity_folder(*pair) for pair in pairs}) == len(pairs)


def test_the_same_identity_meets_the_same_locks(library: SkillLibrary) -> None:
    first, second = library.of("t", "ann"), library.of("t", "ann")
    assert first._folders[0] is second._folders[0]


def test_an_upload_stands_before_a_sample_for_that_person_alone(library: SkillLibrary) -> None:
    ann, bob = library.of("t", "ann"), library.of("t", "bob")
    add(ann, "sample", "mine")
    assert listed(ann) == [("sample", "upload", True)]
    assert ann.read("sample").body == "mine"
    assert ann.read("sample", "sample").body == "sample"
    assert bob.read("sample").body == "sample"
    ann.delete("sample")
    assert ann.read("sample").body == "sample"
    assert ann.restore("sample").origin == "upload"


def test_a_broken_upload_hides_no_whole_skill(library: SkillLibrary, own: Path) -> None:
    ann = library.of("t", "ann")
    place = put(own / ".of" / identity_folder("t", "ann"), "sample", "broken")
    assert [(skill.name, skill.origin) for skill in ann.list()] == [
        ("sample", "sample"),
        ("sample", "upload"),
    ]
    assert [skill.origin for skill in ann.usable()] == ["sample"]
    assert ann.read("sample").body == "sample"
    assert ann.read("sample", "upload").source == "broken"
    ann.edit("sample", skill_md("sample", body="mended"))
    assert ann.read("sample").body == "mended"
    assert place.is_dir()


def test_a_change_is_made_where_it_is_asked_for(own: Path, tmp_path: Path) -> None:
    one_person = SkillLibrary(own, own_writable=True).of("local", "local")
    put(own, "both")
    mine = put(own / ".of" / identity_folder("local", "local"), "both", "broken")
    one_person.edit("both", skill_md("both", body="edited"), origin="server")
    assert one_person.read("both", "server").body == "edited"
    assert one_person.read("both", "upload").source == "broken"
    one_person.delete("both", "server")
    one_person.delete("both", "upload")
    assert (one_person.deleted("server"), one_person.deleted("upload")) == (("both",), ("both",))
    assert one_person.restore("both", "server").origin == "server"
    assert not mine.exists()
    with pytest.raises(NotFound):
        one_person.delete("both", "upload")


def test_an_adopted_skill_may_begin_with_another_text(
    library: SkillLibrary, tmp_path: Path
) -> None:
    put(tmp_path / "samples", "sample", None, scripts__x_py="print()")
    ann = library.of("t", "ann")
    for wrong in ("broken", skill_md("other")):
        with pytest.raises(SkillRefused):
            ann.adopt("sample", wrong)
    assert ann.read("sample").skill.origin == "sample"
    ann.adopt("sample", skill_md("sample", body="mine"))
    assert ann.read("sample", "upload").body == "mine"
    assert ann.read_file("sample", "scripts/x.py") == b"print()"


def test_the_servers_skills_and_samples_change_only_where_that_is_said(
    library: SkillLibrary, own: Path, tmp_path: Path
) -> None:
    put(own, "own")
    ann = library.of("t", "ann")
    for name in ("own", "sample"):
        changes: list[Callable[[], object]] = [
            partial(ann.edit, name, skill_md(name)),
            partial(ann.delete, name),
        ]
        for change in changes:
            with pytest.raises(HarnessError) as caught:
                change()
            assert caught.value.code == "skill_read_only"
    one_person = SkillLibrary(own, tmp_path / "samples", own_writable=True).of("local", "local")
    one_person.edit("own", skill_md("own", body="edited"))
    assert one_person.read("own").body == "edited"
    one_person.delete("own")
    assert one_person.restore("own").origin == "server"
    with pytest.raises(SkillRefused):
        one_person.delete("sample")


def test_a_sample_is_adopted_to_be_edited_and_comes_back(
    library: SkillLibrary, tmp_path: Path
) -> None:
    put(tmp_path / "samples", "sample", None, scripts__x_py="print()")
    ann = library.of("t", "ann")
    assert ann.adopt("sample") == ("sample", 0, False, "")
    ann.edit("sample", skill_md("sample", body="edited"))
    assert ann.read("sample").body == "edited"
    assert ann.read_file("sample", "scripts/x.py") == b"print()"
    with pytest.raises(SkillRefused, match="already"):
        ann.adopt("sample")
    assert library.of("t", "bob").read("sample").body == "Do it."
    ann.delete("sample")
    assert ann.read("sample").skill.origin == "sample"


def test_a_checkouts_samples_are_listed_once(own: Path) -> None:
    put(own, "own")
    (own.parent / "same").symlink_to(own)
    library = SkillLibrary(own, own.parent / "same")
    assert listed(library.of("t", "ann")) == [("own", "server", False)]


def test_a_near_name_is_suggested(library: SkillLibrary) -> None:
    with pytest.raises(NotFound, match="Did you mean 'sample'"):
        library.of("t", "ann").get("samples")


def test_what_is_switched_off_is_not_usable(library: SkillLibrary) -> None:
    ann = library.of("t", "ann")
    assert ann.usable({"sample"}) == ()
    assert [skill.name for skill in ann.usable({"other"})] == ["sample"]


def test_the_prompt_has_names_and_descriptions_alone(library: SkillLibrary) -> None:
    ann = library.of("t", "ann")
    text = skills_prompt([*ann.usable(), Skill("broken", "Never shown.", fault="x")])
    assert text.splitlines()[1:] == ["- sample: Does a thing."]
    assert skills_prompt([]) == ""
    assert skills_prompt([Skill("broken", fault="x")]) == ""


@pytest.mark.parametrize("count", [1, 20, 60, 200, 3000])
@pytest.mark.parametrize("length", [1, 1024])
def test_the_prompt_stays_within_its_size(count: int, length: int) -> None:
    many = [Skill(f"skill-{number}", "d" * length) for number in range(count)]
    text = skills_prompt(many)
    assert len(text) <= MAX_PROMPT_CHARS
    lines = text.splitlines()[1:]
    shown = [line for line in lines if line.startswith("- skill-")]
    if len(shown) < count:
        assert f"({count - len(shown):,} more skills" in lines[-1]
    if count <= 60:
        assert len(shown) == count
