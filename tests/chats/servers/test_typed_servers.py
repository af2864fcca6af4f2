"""What a person types becomes the server that they mean, or a refusal in words."""

from __future__ import annotations

import pytest

from web.chats.servers.typed_servers import TypedServer, spec_of, spec_of_entry
from web.harness.values.errors import ConfigurationError


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("npx -y @modelcontextprotocol/server-everything", "everything"),
        ("uvx mcp-server-time --local-timezone=UTC", "time"),
        ("/opt/bin/python3.11 -m web demo-server", "web"),
        ("python -c 'import sys; print(1)'", "python"),
        ("node ./dist/weather.js", "weather"),
        ("https://mcp.example.com:8443/mcp?key=1", "mcp-example-com"),
    ],
)
def test_a_server_without_a_name_is_named_after_what_it_is(target: str, name: str) -> None:
    assert spec_of(TypedServer(target), ()).name == name
    assert spec_of(TypedServer(target), (name, f"{name}-2")).name == f"{name}-3"


def test_a_command_line_is_split_as_a_shell_would_and_nothing_of_it_is_expanded() -> None:
    spec = spec_of(
        TypedServer(
            "run 'two words' $HOME ${HOME} *",
            folder="/tmp",
            secrets="A=1\n\nB=x=${y}\n",
            roots=False,
        ),
        (),
    )
    assert not spec.roots
    assert (spec.kind, spec.command, spec.cwd) == ("stdio", "run", "/tmp")
    assert spec.args == ("two words", "$HOME", "${HOME}", "*")
    assert spec.env == {"A": "1", "B": "x=${y}"}


def test_an_address_takes_headers_in_either_form() -> None:
    spec = spec_of(
        TypedServer("HTTPS://example.com/mcp", secrets="Authorization: Bearer a=b\nX-Team=red"), ()
    )
    assert (spec.kind, spec.name) == ("http", "example-com")
    assert spec.headers == {"Authorization": "Bearer a=b", "X-Team": "red"}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (TypedServer("  "), "nothing to connect to"),
        (TypedServer("ftp://example.com"), "ftp:// cannot"),
        (TypedServer("htps:/example.com"), "htps:/ cannot"),
        (TypedServer("file:///etc/passwd"), "file:/// cannot"),
        (TypedServer("https://"), "must be an address"),
        (TypedServer("run 'open"), "quote that is not closed"),
        (TypedServer("run", secrets="A=1\nsesame"), "Line 2"),
        (TypedServer("https://example.com", secrets="A B=sesame"), "no name that a header"),
        (TypedServer("run", protocol="sesame"), "'protocol'"),
        (TypedServer("run", name="n" * 41), "at most 40"),
        (TypedServer("run " * 2000), "at most 4,000"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_repeats_no_secret(typed: TypedServer, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        spec_of(typed, ())
    assert words in caught.value.message
    assert "sesame" not in caught.value.message


@pytest.mark.parametrize(
    ("entry", "name", "words"),
    [
        ({"command": "ls"}, "x" * 1_000_000, "The name has 1,000,000 characters; at most 40"),
        ({"command": "ls", "args": [""] * 100_000}, "", "The command line has 100,002 characters"),
        ({"command": "l" * 5_000}, "", "The command line has 5,000 characters"),
        ({"url": f"https://a.example/{'x' * 5_000}"}, "", "The address has 5,018 characters"),
        ({"command": "ls", "cwd": "/" * 5_000}, "", "The folder has 5,000 characters"),
        ({"command": "ls", "env": {"A": "x" * 30_000}}, "", "The list of headers or variables has"),
        (
            {"url": "https://a.example", "headers": {f"a{n}": "" for n in range(9_000)}},
            "",
            "The list of headers or variables has",
        ),
    ],
    ids=["name", "arguments", "command", "address", "folder", "variables", "headers"],
)
def test_an_entry_of_a_program_has_the_limits_of_the_form(
    entry: dict[str, object], name: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        spec_of_entry(entry, name, ())
    assert words in caught.value.message
    assert len(caught.value.message) < 120
