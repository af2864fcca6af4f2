"""Templates of addresses are filled in as the examples of RFC 6570 are."""

from __future__ import annotations

import pytest

from web.chats.servers.uri_templates import read_template

VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "path": "/foo/bar",
    "x": "1024",
    "y": "768",
    "empty": "",
    "half": "50%",
    "done": "50%25",
    "ö": "1",
}


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("{+path}/here", "/foo/bar/here"),
        ("{+half} {+done}", "50%25 50%25"),
        ("X{#x,hello,y}", "X#1024,Hello%20World!,768"),
        ("X{.var,x}", "X.value.1024"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{?x,y,empty}", "?x=1024&y=768"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var:3}{var:30}", "valvalue"),
        ("{/var:1,var}", "/v/value"),
        ("{?x*}", "?x=1024"),
        ("a{empty}{undefined}{?empty}b", "ab"),
        ("plain", "plain"),
    ],
)
def test_a_template_is_filled_in(template: str, address: str) -> None:
    assert read_template(template).expanded(VALUES) == address


def test_its_variables_are_named_once_in_their_order() -> None:
    assert read_template("{b}/{a:3}{?b,c*}").names == ("b", "a", "c")


@pytest.mark.parametrize(
    "template", ["{", "a}b", "{}", "{a", "{{a}}", "{!a}", "{a b}", "{a:x}", "{a,}", "x" * 4_001]
)
def test_a_template_that_is_none_is_refused_in_words(template: str) -> None:
    with pytest.raises(ValueError, match="it"):
        read_template(template)


def test_more_variables_than_a_form_has_room_for_are_refused() -> None:
    with pytest.raises(ValueError, match="20 variables"):
        read_template("".join(f"{{v{number}}}" for number in range(21)))
