"""Paths that could mean something else are refused with words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from web.harness.builtin.paths import MAX_DEPTH, folded, parse_path
from web.harness.values.errors import ToolError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("note.txt", ("note.txt",)),
        ("./note.txt", ("note.txt",)),
        ("a/b/c.md", ("a", "b", "c.md")),
        (".hidden", (".hidden",)),
        ("harness", ("harness",)),
        (".harnesses", (".harnesses",)),
        ("harness~1.txt", ("harness~1.txt",)),
        ("..a", ("..a",)),
        ("a b.txt", ("a b.txt",)),
        ("q\"uote's #1 100%.txt", ("q\"uote's #1 100%.txt",)),
        ("日本語/übung.md", ("日本語", "übung.md")),
        (unicodedata.normalize("NFD", "é.txt"), ("é.txt",)),
        ("क्\u200dष.txt", ("क्\u200dष.txt",)),
        ("console.log", ("console.log",)),
        ("~/x", ("~", "x")),
        ("/".join("a" * MAX_DEPTH), ("a",) * MAX_DEPTH),
        ("x" * 200, ("x" * 200,)),
    ],
)
def test_an_ordinary_path_is_taken(text: str, names: tuple[str, ...]) -> None:
    assert parse_path(text) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("/etc/passwd", "absolute"),
        ("//server/share", "absolute"),
        ("..", "'..'"),
        ("../x", "'..'"),
        ("a/../../x", "'..'"),
        ("a/..", "'..'"),
        (".", "'.'"),
        ("a/./b", "'.'"),
        ("./../x", "'..'"),
        (".//etc/passwd", "empty name"),
        ("a//b", "empty name"),
        ("a/", "names a folder"),
        ("a\\b", "backslash"),
        ("..\\x", "backslash"),
        ("C:/x", "colon"),
        ("C:x", "colon"),
        ("file.txt:stream", "colon"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7fb", "control character"),
        ("a\u2028b", "control character"),
        ("a\u202etxt.exe", "invisible"),
        ("a\u200fb", "invisible"),
        ("a\u200bb", "invisible"),
        ("\ufeffa", "invisible"),
        ("a\ud800b", "not valid Unicode"),
        ("a\ufffdb", "replacement"),
        ("\uff0e\uff0e/x", "holds"),
        ("\u2025/x", "holds"),
        ("..\uff0fx", "look-alike"),
        ("..\uff3cx", "look-alike"),
        ("c\uff1ax", "look-alike"),
        ("a.", "ends with a dot"),
        ("a /b", "space"),
        ("a/ b", "space"),
        ("a\u00a0", "space"),
        ("CON", "device"),
        ("nul.txt", "device"),
        ("a/Com1", "device"),
        ("lpt9.tar.gz", "device"),
        (".~harness-0", "reserved"),
        (".~HARNESS-0", "reserved"),
        (".harness", "reserved"),
        (".harness/versions.jsonl", "reserved"),
        ("./.harness/x", "reserved"),
        ("a/.harness/x", "reserved"),
        (".HARNESS/x", "reserved"),
        (".Harne\u017fs/x", "reserved"),
        (".harne\u00df/x", "reserved"),
        ("\uff0eharness/x", "reserved"),
        (".\uff48arness/x", "reserved"),
        (".har\u200cness/x", "reserved"),
        (".harness\ufe0f/x", "reserved"),
        (".har\u034fness/x", "reserved"),
        ("HARNES~1/x", "reserved"),
        ("harnes~2", "reserved"),
        ("HA5F3C~1/x", "reserved"),
        ("x" * 201, "longer than 200 bytes"),
        ("ü" * 101, "longer than 200 bytes"),
        ("a/" * 600 + "a", "1,024 characters"),
        ("/".join("a" * (MAX_DEPTH + 1)), "deeper than 16"),
    ],
)
def test_a_path_that_could_mean_something_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_path(text)
    assert words in caught.value.message
    assert "relative to the chat's folder" in caught.value.message or "1,024" in words
    caught.value.message.encode()


def test_names_that_some_disk_takes_for_the_same_have_one_spelling() -> None:
    alike = ["Straße", "STRASSE", "stra\u200dsse", "strasse\ufe0f"]
    assert {folded(name) for name in alike} == {"strasse"}
    assert folded("\u00e9") == folded("E\u0301")
    assert folded("a") != folded("b")


@given(st.text(st.characters() | st.sampled_from("./\\:~ \0\ufeff"), max_size=30))
def test_any_text_is_taken_safely_or_refused_with_words(text: str) -> None:
    try:
        names = parse_path(text)
    except ToolError as error:
        error.message.encode()
        return
    assert names
    for name in names:
        assert name not in ("", ".", "..")
        assert not set(name) & set("/\\:\0")
    assert parse_path("/".join(names)) == names
