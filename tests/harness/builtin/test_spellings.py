"""A name is the same in each form of Unicode, and what cannot be used is named with its reason."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.files import file_tools
from web.harness.builtin.versions import PERSON
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext
from web.harness.values.errors import NotFound

pytestmark = pytest.mark.anyio

NFC = unicodedata.normalize("NFC", "café/é.txt")
NFD = unicodedata.normalize("NFD", NFC)


@pytest.fixture
def files(tmp_path: Path) -> ChatFiles:
    return ChatFiles(tmp_path)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A file as an editor that takes accents apart has made it."""
    place = tmp_path / NFD
    place.parent.mkdir()
    place.write_text("by hand")
    return place


@pytest.mark.parametrize("path", [NFC, NFD])
async def test_a_file_that_an_editor_spelled_otherwise_is_used_as_any_other(
    files: ChatFiles, apart: Path, path: str
) -> None:
    assert [info.path for info in await files.list()] == [NFC]
    assert await files.read(path) == b"by hand"
    await files.write(path, b"new", PERSON, replace=True)
    assert apart.read_text() == "new"
    assert [version.number for version in await files.versions(path)] == [1, 2]
    await files.write("café/b.txt", b"x", PERSON, replace=False)
    assert sorted(os.listdir(apart.parent)) == sorted(["b.txt", apart.name])
    await files.delete("café/b.txt", PERSON)
    await files.delete(path, PERSON)
    assert not apart.parent.exists()
    await files.restore(path, 1, PERSON)
    assert await files.read(NFD) == b"by hand"


async def test_of_two_spellings_the_usual_one_counts(files: ChatFiles, tmp_path: Path) -> None:
    (tmp_path / unicodedata.normalize("NFD", "é.txt")).write_text("apart")
    (tmp_path / "é.txt").write_text("composed")
    survey = await files.survey()
    assert [info.path for info in survey.files] == ["é.txt"]
    assert await files.read("é.txt") == b"composed"
    assert [each.why for each in survey.named] == [
        "another one here has the same name, spelled otherwise"
    ]


async def test_a_link_that_is_spelled_otherwise_is_not_followed(
    files: ChatFiles, tmp_path: Path
) -> None:
    outside = tmp_path.parent / "outside.txt"
    outside.write_text("secret")
    (tmp_path / unicodedata.normalize("NFD", "é.txt")).symlink_to(outside)
    (tmp_path / unicodedata.normalize("NFD", "ö")).symlink_to(tmp_path.parent)
    assert [each.why for each in (await files.survey()).named] == ["it is a link"] * 2
    for path in ("é.txt", "ö/outside.txt"):
        with pytest.raises(Exception, match="link"):
            await files.read(path)
    with pytest.raises(NotFound):
        await files.read("ü.txt")


async def test_what_is_left_out_is_named_with_its_reason(files: ChatFiles, tmp_path: Path) -> None:
    reasons = {
        "con.txt": "'con.txt' is the name of a device on Windows",
        "n" * 244: "a name is longer than 200 bytes",
        "a\tb": "it holds a control character",
        "a\nb": "it holds a control character",
        "a\\b": "it holds a backslash; folders are separated by /",
        "a\u202eb": "it holds an invisible character",
        "\u212a.txt": "it is spelled with a look-alike of another character",
    }
    for name in reasons:
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("con.txt")
    os.link(tmp_path / "con.txt", tmp_path / "con.txt.2")
    (tmp_path / "con.txt.2").unlink()
    os.mkfifo(tmp_path / "pipe")
    survey = await files.survey()
    assert survey.left_out == len(reasons) + 2
    expected = {unicodedata.normalize("NFC", name): why for name, why in reasons.items()}
    assert dict(survey.named) == {
        **expected, "link": "it is a link", "pipe": "it is a device, pipe or socket"
    }  # fmt: skip
    for number in range(40):
        (tmp_path / f"link{number}").symlink_to("con.txt")
    survey = await files.survey()
    assert (survey.left_out, len(survey.named)) == (len(reasons) + 42, 20)
    output = await ToolRegistry(file_tools(files)).run("list_files", {}, ToolContext("c"), 10)
    assert "Left out, since they cannot be read here: 49.\n- " in output.text
    assert len(output.text.splitlines()) == 7
