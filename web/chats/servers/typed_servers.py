"""MCP servers as a person types them: an address or a command line, and what goes with it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from web.harness.mcp.programs import subject
from web.harness.mcp.spec import ServerSpec, read_servers
from web.harness.values.errors import ConfigurationError

MAX_TARGET_CHARS = 4_000
MAX_NAME_CHARS = 40
MAX_SECRETS_CHARS = 20_000

_ADDRESS = re.compile(r"https?://", re.I)
_OTHER_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/+", re.I)
"""One slash too few is a slip; a letter alone is a drive, as in C:/server.exe."""
_AFFIXES = re.compile(r"^(?:mcp-)?server-|-mcp(?:-server)?$|\.(?:py|js|mjs|ts|exe|cmd)$", re.I)


@dataclass(frozen=True, slots=True)
class TypedServer:
    """The fields of the form. `secrets` are `KEY=VALUE` lines: headers, or the environment."""

    target: str
    name: str = ""
    folder: str = ""
    protocol: str = "auto"
    roots: bool = True
    secrets: str = field(default="", repr=False)


def spec_of(typed: TypedServer, taken: Container[str]) -> ServerSpec:
    """What to connect to. A server without a name gets one that is not `taken`.

    Raises ConfigurationError, whose words hold no value of `secrets`.
    """
    target = typed.target.strip()
    _check(("address or command line", [target], MAX_TARGET_CHARS))
    _check(("list of headers or variables", [typed.secrets], MAX_SECRETS_CHARS))
    if not target:
        raise ConfigurationError(
            "There is nothing to connect to.", hint="Type an address or a command line."
        )
    is_address = _ADDRESS.match(target) is not None
    entry: dict[str, Any] = {"protocol": typed.protocol or "auto", "roots": typed.roots}
    if is_address:
        entry |= {"url": target, "headers": _pairs(typed.secrets, colons=True)}
    else:
        words = _words(target)
        entry |= {"command": words[0], "args": words[1:], "env": _pairs(typed.secrets)}
        if typed.folder.strip():
            entry["cwd"] = typed.folder.strip()
    return spec_of_entry(entry, typed.name, taken)


def spec_of_entry(entry: Mapping[str, Any], name: str, taken: Container[str]) -> ServerSpec:
    """What an entry as in `mcpServers` connects to. Without a `name` it gets one not `taken`.

    Raises ConfigurationError, whose words hold no value of headers or variables.
    """
    pairs = [each for key in ("headers", "env") for each in (entry.get(key) or {}).items()]
    _check(
        ("name", [name], MAX_NAME_CHARS),
        ("address", [entry.get("url")], MAX_TARGET_CHARS),
        ("command line", [entry.get("command"), *(entry.get("args") or ())], MAX_TARGET_CHARS),
        ("folder", [entry.get("cwd")], MAX_TARGET_CHARS),
        (
            "list of headers or variables",
            [each for pair in pairs for each in pair],
            MAX_SECRETS_CHARS,
        ),
    )
    name = name.strip() or _free(_about(entry), taken)
    # What is given here is meant as it stands: nothing of this server's environment gets into it.
    text = json.dumps({"mcpServers": {name: entry}}).replace("${", "$${")
    return read_servers(text, {})[0]


def _check(*limits: tuple[str, Sequence[str | None], int]) -> None:
    """Raises ConfigurationError for texts that are too long together, one of a few or many."""
    for what, texts, most in limits:
        length = sum(len(text or "") for text in texts) + len(texts) - 1
        if length > most:
            raise ConfigurationError(
                f"The {what} has {length:,} characters; at most {most:,} are taken."
            )


def _words(target: str) -> list[str]:
    other = _OTHER_SCHEME.match(target)
    if other is not None:
        raise ConfigurationError(
            f"An address that starts with {other[0][:21]} cannot be connected to.",
            hint="Use http:// or https://, or a command line.",
        )
    try:
        return shlex.split(target)
    except ValueError:
        raise ConfigurationError(
            "The command line has a quote that is not closed, or ends in a backslash."
        ) from None


def _pairs(text: str, *, colons: bool = False) -> dict[str, str]:
    """`KEY=VALUE` lines; with `colons` also `KEY: VALUE`, as headers are often written."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = re.match(r"([^=:]*)[=:](.*)" if colons else r"([^=]*)=(.*)", line)
        if match is None or not match[1].strip():
            raise ConfigurationError(
                f"Line {number} of the headers or variables is not KEY=VALUE.",
                hint="Write each on a line of its own.",
            )
        pairs[match[1].strip()] = match[2].strip()
    return pairs


def _about(entry: Mapping[str, Any]) -> str:
    """What an entry may be named after: its host, or its program."""
    if "command" in entry:
        about = subject([entry["command"], *entry.get("args", ())])
        return _AFFIXES.sub("", _AFFIXES.sub("", about))
    try:
        return urlsplit(str(entry.get("url", ""))).netloc.rpartition("@")[2].partition(":")[0]
    except ValueError:
        # Whoever reads the entry says what is wrong with the address.
        return ""


def _free(guess: str, taken: Container[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9]+", "-", guess).strip("-")[: MAX_NAME_CHARS - 4] or "server"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name
