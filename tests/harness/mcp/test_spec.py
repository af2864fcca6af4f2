"""The file of servers is read as people have it, and a mistake is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.processes import run_code
from web.harness.mcp.spec import ServerSpec, connect_seconds_for, read_servers
from web.harness.values.errors import ConfigurationError

ENVIRON = {"TOKEN": "tok-123456", "FOLDER": "/data", "EMPTY": "", "API_KEY": "key-abcdef"}


def read(entry: Any, name: str = "s", environ: dict[str, str] | None = None) -> ServerSpec:
    text = json.dumps({"mcpServers": {name: entry}})
    (spec,) = read_servers(text, ENVIRON if environ is None else environ)
    return spec


def test_a_command_with_arguments_folder_and_environment() -> None:
    spec = read({"command": "npx", "args": ["-y", "pkg"], "env": {"A": "1"}, "cwd": "~/x"})
    assert (spec.name, spec.kind, spec.command, spec.args) == ("s", "stdio", "npx", ("-y", "pkg"))
    assert (spec.env, spec.cwd, spec.disabled, spec.protocol) == ({"A": "1"}, "~/x", False, "auto")
    assert (spec.connect_seconds, spec.call_seconds) == (60.0, 60.0)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "http"),
        ({"type": "http"}, "http"),
        ({"type": "streamable-http"}, "http"),
        ({"type": "streamableHttp"}, "http"),
        ({"type": "sse"}, "sse"),
        ({"transport": "sse"}, "sse"),
    ],
)
def test_an_address_has_the_kind_it_names(given: dict[str, str], kind: str) -> None:
    spec = read({"url": "https://example.com/mcp", "headers": {"X-Key": "v"}, **given})
    assert (spec.kind, spec.url, spec.headers) == (kind, "https://example.com/mcp", {"X-Key": "v"})
    assert spec.connect_seconds == 20.0


def test_several_servers_keep_their_order_and_other_programs_keys_are_ignored() -> None:
    servers = {
        "b": {"command": "b", "autoApprove": ["x"], "envFile": ".env", "timeout": 5},
        "a": {"url": "http://localhost:1/mcp", "disabled": True},
    }
    text = "\ufeff" + json.dumps({"inputs": [], "servers": servers})
    specs = read_servers(text, {})
    assert [(spec.name, spec.disabled) for spec in specs] == [("b", False), ("a", True)]


def test_variables_stand_in_every_text() -> None:
    spec = read(
        {
            "command": "${FOLDER}/run",
            "args": ["--key=${env:API_KEY}", "${NONE:-plain}", "${EMPTY:-filled}", "$${FOLDER}"],
            "cwd": "${FOLDER}",
            "env": {"A": "${TOKEN}"},
        }
    )
    assert (spec.command, spec.cwd, spec.env) == ("/data/run", "/data", {"A": "tok-123456"})
    assert spec.args == ("--key=key-abcdef", "plain", "filled", "${FOLDER}")
    remote = read({"url": "http://h${FOLDER}", "headers": {"Authorization": "Bearer ${TOKEN}"}})
    assert (remote.url, remote.headers["Authorization"]) == ("http://h/data", "Bearer tok-123456")


def test_a_server_that_is_switched_off_may_name_unset_variables() -> None:
    assert read({"url": "${NOWHERE}", "disabled": True}).disabled


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("text", "MCP server 's' must be an object"),
        ({}, "MCP server 's' needs 'command' or 'url'"),
        ({"command": "a", "url": "http://b"}, "'url' of MCP server 's' does not go with 'command'"),
        ({"type": "http", "url": "http://b", "args": []}, "'args' of MCP server 's' does not go"),
        ({"type": "pigeon", "command": "a"}, "'type' of MCP server 's' must be one of stdio"),
        ({"command": ["a"]}, "'command' of MCP server 's' must be text"),
        ({"command": " "}, "'command' of MCP server 's' must not be empty"),
        ({"command": "a", "args": "b"}, "'args' of MCP server 's' must be a list"),
        ({"command": "a", "args": [1]}, "'args' of MCP server 's' must be a list of texts"),
        ({"command": "a", "arg": []}, "'arg' of MCP server 's' is not known. Did you mean 'args'?"),
        ({"command": "a", "env": {"PORT": 1}}, "'env.PORT' of MCP server 's' must be text"),
        ({"command": "a", "env": {"A=B": "1"}}, "'env.A=B' of MCP server 's' is no name"),
        ({"command": "a", "cwd": 1}, "'cwd' of MCP server 's' must be text"),
        ({"command": "a", "disabled": "no"}, "'disabled' of MCP server 's' must be true or false"),
        ({"command": "a", "protocol": "2099"}, "'protocol' of MCP server 's' must be one of auto"),
        ({"command": "a", "callSeconds": 0}, "'callSeconds' of MCP server 's' must be a number"),
        ({"command": "a", "callSeconds": True}, "'callSeconds' of MCP server 's' must be a number"),
        ({"url": "ftp://b"}, "'url' of MCP server 's' must be an address"),
        ({"url": "http://b:x/"}, "'url' of MCP server 's' must be an address"),
        (
            {"url": "http://b", "headers": {"A B": "1"}},
            "'headers.A B' of MCP server 's' is no name",
        ),
        ({"url": "http://b", "headers": {"A": "1\n2"}}, "'headers.A' of MCP server 's' has line"),
        ({"url": "http://b", "headers": {"A": "${NO}"}}, "'headers.A' of MCP server 's' names the"),
        ({"command": "a", "args": ["${input:k}"]}, "'args' of MCP server 's' asks for an input"),
    ],
)
def test_a_mistake_names_server_and_key_in_one_line(entry: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(entry)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON: .* in line 1"),
        ("[]", "must be a JSON object"),
        ("{}", "has no servers"),
        ('{"mcpServers": []}', "has no servers"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {}}}', "names 'a' twice"),
        ('{"mcpServers": {" ": {"command": "x"}}}', "empty or unprintable name"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_file_that_is_no_list_of_servers_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_servers(text, {})


def test_no_secret_is_in_the_representation_or_in_a_mistake() -> None:
    spec = read(
        {
            "url": "https://u:pass-word@h/p?key=query-secret",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
        }
    )
    for secret in ("tok-123456", "pass-word", "query-secret"):
        assert secret not in repr(spec)
        assert secret not in spec.address
        assert secret not in spec.conceal(f"I was sent {secret}, thanks")
    local = read({"command": "a", "args": ["--key", "${API_KEY}"], "env": {"MY_TOKEN": "e-secret"}})
    assert "key-abcdef" not in repr(local)
    assert local.conceal("key-abcdef e-secret a") == "[secret] [secret] a"
    with pytest.raises(ConfigurationError) as caught:
        read({"url": "http://h", "headers": {"A": "v-secret\n"}})
    assert "v-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "seconds"),
    [("npx", 60), ("/usr/bin/uvx", 60), ("C:\\node\\npx.cmd", 60), ("docker", 60), ("node", 20)],
)
def test_a_command_that_may_download_gets_more_time(command: str, seconds: float) -> None:
    assert connect_seconds_for(command) == seconds


def test_reading_servers_and_making_connections_loads_no_sdk() -> None:
    code = (
        "import sys, web.harness.mcp.spec, web.harness.mcp.connections;"
        "sys.exit('mcp' in sys.modules or 'httpx2' in sys.modules)"
    )
    assert run_code(code).returncode == 0
