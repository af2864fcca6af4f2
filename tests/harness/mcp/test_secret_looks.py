"""What looks like a secret in an address or a command is told from what does not."""

from __future__ import annotations

import pytest

from web.harness.mcp.secret_looks import (
    secrets_of_arguments,
    secrets_of_path,
    without_secrets_of_path,
)

RANDOM = "f3Kx09aLq2ZvB7nT4mWc"

PATHS = [
    (f"/s/{RANDOM}/mcp", RANDOM),
    ("/api/mcp/s/0d9f6b1c-52aa-4c0e-9f0a-7b1f3f7d2f11/sse", "0d9f6b1c-52aa-4c0e-9f0a-7b1f3f7d2f11"),
    ("/v1/sk-abcdefgh12345678/mcp", "sk-abcdefgh12345678"),
    ("/hooks/9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c7d659a2feaa0c55ad015"),
    ("/mcp/key=opensesame1", "key=opensesame1"),
    ("/token/opensesame1/mcp", "opensesame1"),
    ("/kJhGfDsaPoIuYtReWqLkJhGfQz/mcp", "kJhGfDsaPoIuYtReWqLkJhGfQz"),
    ("/x/eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"),
    ("/a/ghp_0123456789abcdef", "ghp_0123456789abcdef"),
    (f"/a/%66{RANDOM}", f"%66{RANDOM}"),
]

PLAIN_PATHS = [
    "/mcp", "/", "", "/api/v1/mcp/stream", "/modelcontextprotocol/servers/filesystem",
    "/2025-11-25/releases", "/org/my-company/project-2024/mcp", "/author/some-body/mcp",
    "/AbstractSingletonProxyFactoryBean", "/docs/authors/list", "/monkeys/mcp",
    "/users/1234567/mcp",
]  # fmt: skip

ARGUMENTS = [
    (["--api-key", "opensesame"], ["opensesame"]),
    (["--api-key=opensesame"], ["opensesame"]),
    (["-y", "server", "--token", "opensesame"], ["opensesame"]),
    (["API_KEY=opensesame"], ["opensesame"]),
    (["-e", "GITHUB_TOKEN=opensesame"], ["opensesame"]),
    (["--header", "Authorization: Bearer opensesame"], ["opensesame"]),
    (["--header", "X-Api-Key:opensesame"], ["opensesame"]),
    (["postgresql://me:opensesame@host/db"], ["opensesame"]),
    (["https://host/mcp?token=opensesame"], ["opensesame"]),
    ([f"https://host/s/{RANDOM}/mcp"], [RANDOM]),
    (["sk-proj-abcdefgh12345678"], ["sk-proj-abcdefgh12345678"]),
    ([f"--account={RANDOM}"], [RANDOM]),
    (["xoxb-1234567890-abcdef"], ["xoxb-1234567890-abcdef"]),
    (["--password", "opensesame", "--port", "80"], ["opensesame"]),
    ([RANDOM], [RANDOM]),
]

PLAIN_ARGUMENTS = [
    ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/projects/notes-2024"],
    ["-m", "mcp_server_time", "--local-timezone=Europe/Berlin"],
    ["run", "-i", "--rm", "mcp/fetch:1.2.3", "--user-agent", "Mozilla"],
    ["image@sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015"],
    ["--keyboard", "german", "--author=somebody", "--tokens=5"],
    ["--url", "http://127.0.0.1:8420/mcp", "--port", "8420", "--date", "2025-11-25"],
    ["C:\\Programs\\McpServer2024\\server.exe", "--verbose"],
]


@pytest.mark.parametrize(("path", "secret"), PATHS)
def test_a_secret_in_a_path_is_found_and_left_out(path: str, secret: str) -> None:
    assert secrets_of_path(path) == [secret]
    shown = without_secrets_of_path(path)
    assert secret not in shown
    assert shown == path.replace(secret, "…")


@pytest.mark.parametrize("path", PLAIN_PATHS)
def test_a_path_of_words_stays_as_it_is(path: str) -> None:
    assert without_secrets_of_path(path) == path


@pytest.mark.parametrize(("arguments", "secrets"), ARGUMENTS)
def test_a_secret_among_arguments_is_found(arguments: list[str], secrets: list[str]) -> None:
    assert secrets_of_arguments(arguments) == secrets


@pytest.mark.parametrize("arguments", PLAIN_ARGUMENTS)
def test_arguments_of_words_are_no_secrets(arguments: list[str]) -> None:
    assert secrets_of_arguments(arguments) == []
