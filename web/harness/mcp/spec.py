"""What to connect to: a server's command or address, and the file in which people keep several."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from web.harness.mcp.programs import located
from web.harness.mcp.secret_forms import SHORTEST_SECRET, forms_of, without
from web.harness.mcp.secret_looks import (
    secrets_of_arguments,
    secrets_of_path,
    without_secrets_of_path,
)
from web.harness.tools.words import did_you_mean
from web.harness.values.errors import ConfigurationError

Kind = Literal["stdio", "http", "sse"]
"""A command spoken to over its pipes, streamable HTTP, or the older HTTP with an event stream."""

Protocol = Literal["auto", "2026-07-28", "legacy"]
"""`auto` asks the server and falls back; the others force one era. Automatic is no superset."""

CONNECT_SECONDS = 20.0
DOWNLOAD_SECONDS = 60.0
CALL_SECONDS = 60.0
KEPT_SECRETS = 16

_DOWNLOADERS = frozenset(
    {"npx", "npm", "pnpm", "bunx", "yarn", "uvx", "uv", "pipx", "docker", "podman", "deno"}
)
"""Commands that may fetch the server before they start it."""
_KINDS: Mapping[str, Kind] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_PROTOCOLS: tuple[Protocol, ...] = ("auto", "2026-07-28", "legacy")
_COMMAND_KEYS = ("command", "args", "cwd", "env")
_ADDRESS_KEYS = ("url", "headers", "oauth")
_OAUTH_KEYS = ("clientId", "clientSecret", "scope", "issuer")
_KEYS = (
    *_COMMAND_KEYS,
    *_ADDRESS_KEYS,
    *("type", "protocol", "connectSeconds", "callSeconds", "disabled", "roots"),
)
_WORDS = {str: "text in quotes", bool: "true or false", list: "a list", dict: "an object"}
_VARIABLE = re.compile(r"(\$?)\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
_INPUT = re.compile(r"\$\{input:")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|AUTH|CRED|COOKIE|SIGNATURE", re.I)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """How this program is known to a server's authorisation server, where somebody registered it.

    `scope` is asked for in place of what the server wants. With `issuer` the client is shown to
    that authorisation server alone. An empty text stands for what is not given.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    issuer: str = ""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """How one server is reached. Its representation tells no argument, address or secret.

    `name` is unique in its scope. `connect_seconds` limits a connect, its tool list included;
    `call_seconds` is how long a call may stay silent: progress starts it anew. `roots` says whether
    it may know of the folders of its `Connections`. `variables` are
    the values that `${VAR}` brought in under a name that sounds secret, `learned` those secrets
    that came while it was connected, such as tokens.
    """

    name: str
    kind: Kind
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    protocol: Protocol = "auto"
    connect_seconds: float = CONNECT_SECONDS
    call_seconds: float = CALL_SECONDS
    disabled: bool = False
    roots: bool = True
    variables: tuple[str, ...] = field(default=(), repr=False)
    oauth: OAuthClient | None = None
    learned: deque[str] = field(
        default_factory=lambda: deque(maxlen=KEPT_SECRETS), repr=False, compare=False
    )

    @property
    def address(self) -> str:
        """The address without user, password, query and fragment, and without what in its path
        looks like a secret, as it may be shown."""
        parts = urlsplit(self.url)
        path = without_secrets_of_path(parts.path)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"

    @property
    def host(self) -> str:
        """Host and port of the address."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def conceal(self, text: str) -> str:
        """The text without the secrets of this server, whoever wrote it.

        All headers and all of the address' query count as such, and what looks like one in its path
        and in the arguments of a command. So does a secret as it stands in
        JSON, in Python's own writing or in an address, and a line of one that has several.
        """
        return without(text, forms_of(self._secrets(all_given=True)))

    def secret_forms(self) -> list[str]:
        """What `without` has to take from the things that a server says to be used.

        Of its headers and query only what is named like a secret: others may be words that it
        has to be able to say.
        """
        return forms_of(self._secrets(all_given=False))

    def _secrets(self, *, all_given: bool) -> set[str]:
        def counts(name: str) -> bool:
            return all_given or _SECRET_NAME.search(name) is not None

        values = [value for name, value in self.env.items() if _SECRET_NAME.search(name)]
        for name, value in self.headers.items():
            if counts(name):
                values += [value, value.rpartition(" ")[2]]
        values += [*self.variables, *self.learned]
        if self.oauth is not None:
            values.append(self.oauth.client_secret)
        parts = urlsplit(self.url)
        values.append(parts.password or "")
        if all_given:
            # A server that is used may have to say these: it is not certain that they are secrets.
            values += [*secrets_of_path(parts.path), *secrets_of_arguments(self.args)]
        pairs = (each.partition("=") for each in parts.query.split("&"))
        values += [value for name, _, value in pairs if counts(name)]
        return {value for value in values if len(value) >= SHORTEST_SECRET}


@dataclass(slots=True)
class Way:
    """How a server was last reached; kept, it spares the next connect the search."""

    legacy: bool = False
    sse: bool = False


def connect_seconds_for(command: str) -> float:
    """How long a connect to this command may take: longer where it may download the server."""
    name = re.split(r"[/\\]", command)[-1].lower()
    stem = re.sub(r"\.(cmd|exe|bat)$", "", name)
    return DOWNLOAD_SECONDS if stem in _DOWNLOADERS else CONNECT_SECONDS


def read_servers(text: str, environ: Mapping[str, str]) -> tuple[ServerSpec, ...]:
    """The servers of a configuration file, in its order.

    `{"mcpServers": {NAME: {"command", "args", "env", "cwd"} or {"url", "headers"}}}`, each with
    `type`, `disabled`, `protocol`, `connectSeconds`, `callSeconds` if wanted; `servers` is read as
    `mcpServers`. `${VAR}`, `${env:VAR}` and `${VAR:-default}` stand in every text; `$${` is a
    plain `${`. Keys of other programs are ignored, a key near one of these is a mistake.

    Raises ConfigurationError, one line that names server and key and holds no value.
    """
    whole = _parsed(text)
    servers = whole.get("mcpServers", whole.get("servers"))
    if not isinstance(servers, dict):
        raise ConfigurationError(
            'The MCP configuration has no servers: it needs {"mcpServers": {"name": {...}}}.'
        )
    return tuple(_Reader(name, entry, environ).spec() for name, entry in servers.items())


def _parsed(text: str) -> dict[str, Any]:
    try:
        whole = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"The MCP configuration is not JSON: {error.msg} in line {error.lineno}, "
            f"column {error.colno}."
        ) from None
    except RecursionError:
        raise ConfigurationError("The MCP configuration is nested too deep.") from None
    if not isinstance(whole, dict):
        raise ConfigurationError("The MCP configuration must be a JSON object.")
    return whole


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigurationError(f"The MCP configuration names '{twice}' twice in one object.")
    return found


class _Reader:
    """One entry of the file, read key by key."""

    def __init__(self, name: str, entry: object, environ: Mapping[str, str]) -> None:
        self._name = name
        self._environ = environ
        self._secrets: list[str] = []
        if not name.strip() or not name.isprintable():
            raise ConfigurationError("An MCP server has an empty or unprintable name.")
        if not isinstance(entry, dict):
            raise self._error("", "must be an object")
        self._entry: dict[str, Any] = entry
        # A server that is switched off may name variables that are not set.
        self._disabled = self._read("disabled", bool, False)

    def spec(self) -> ServerSpec:
        self._check_keys()
        kind = self._kind()
        for key in _ADDRESS_KEYS if kind == "stdio" else _COMMAND_KEYS:
            if key in self._entry:
                other = "command" if kind == "stdio" else "url"
                raise self._error(key, f"does not go with '{other}'")
        env = self._map("env", self._checked_env)
        path = env.get("PATH", self._environ.get("PATH"))
        command = located(self._text("command"), path) if kind == "stdio" else ""
        return ServerSpec(
            name=self._name,
            kind=kind,
            command=command,
            args=self._args(),
            cwd=self._text("cwd") if self._entry.get("cwd") is not None else None,
            env=env,
            url=self._url() if kind != "stdio" else "",
            headers=self._map("headers", self._checked_header),
            oauth=self._oauth(),
            protocol=self._choice("protocol", _PROTOCOLS, "auto"),
            connect_seconds=self._seconds("connectSeconds", connect_seconds_for(command)),
            call_seconds=self._seconds("callSeconds", CALL_SECONDS),
            disabled=self._disabled,
            roots=self._read("roots", bool, True),
            variables=tuple(self._secrets),
        )

    def _check_keys(self) -> None:
        for key in self._entry:
            near = did_you_mean(key, _KEYS) if key not in _KEYS and len(key) > 2 else ""
            # Another program's key, such as `envFile`, is no misspelling: it is longer by a word.
            if near and abs(len(key) - len(near.split("'")[1])) <= 2:
                raise self._error(key, f"is not known.{near}", end="")

    def _kind(self) -> Kind:
        given = self._read("type", str, self._read("transport", str, None))
        if given is not None:
            if given not in _KINDS:
                raise self._error("type", f"must be one of {', '.join(_KINDS)}")
            return _KINDS[given]
        if "command" in self._entry and "url" in self._entry:
            raise self._error("url", "does not go with 'command'")
        if "command" not in self._entry and "url" not in self._entry:
            raise self._error("", "needs 'command' or 'url'")
        return "stdio" if "command" in self._entry else "http"

    def _args(self) -> tuple[str, ...]:
        given = self._read("args", list, [])
        if not all(isinstance(each, str) for each in given):
            raise self._error("args", "must be a list of texts")
        return tuple(self._expanded("args", each) for each in given)

    def _url(self) -> str:
        url = self._text("url")
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port  # raises ValueError where it is no number
        except ValueError:
            usable = False
        if not (usable or self._disabled) or not url.isprintable():
            raise self._error("url", "must be an address such as https://example.com/mcp")
        return url

    def _map(self, key: str, check: Callable[[str, str, str], None]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in self._read(key, dict, {}).items():
            where = f"{key}.{name}"
            if not isinstance(value, str):
                raise self._error(where, "must be text in quotes")
            found[name] = self._expanded(where, value)
            check(where, name, found[name])
        return found

    def _oauth(self) -> OAuthClient | None:
        given = self._read("oauth", dict, None)
        if given is None:
            return None
        found: dict[str, str] = {}
        for key in _OAUTH_KEYS:
            value = given.get(key)
            if not isinstance(value, str | None):
                raise self._error(f"oauth.{key}", "must be text in quotes")
            found[key] = self._expanded(f"oauth.{key}", value or "")
        client_id, secret, scope, issuer = (found[key] for key in _OAUTH_KEYS)
        if secret and not client_id:
            raise self._error("oauth.clientSecret", "does not go without 'clientId'")
        return OAuthClient(client_id, secret, scope, issuer)

    def _checked_env(self, where: str, name: str, value: str) -> None:
        if not name or "=" in name or "\0" in name + value:
            raise self._error(where, "is no name and value that an environment can hold")

    def _checked_header(self, where: str, name: str, value: str) -> None:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise self._error(where, "is no name that a header can have")
        if value != value.strip() or not value.isprintable() or not value.isascii():
            raise self._error(where, "has line ends, outer spaces or signs that no header can hold")

    def _text(self, key: str) -> str:
        text = self._expanded(key, self._read(key, str, ""))
        if not text.strip() or "\0" in text:
            raise self._error(key, "must not be empty")
        return text

    def _seconds(self, key: str, default: float) -> float:
        given = self._entry.get(key, default)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 86_400:
            raise self._error(key, "must be a number of seconds between 0 and 86,400")
        return float(given)

    def _choice(self, key: str, choices: tuple[Protocol, ...], default: Protocol) -> Protocol:
        given = self._entry.get(key, default)
        for choice in choices:
            if choice == given:
                return choice
        raise self._error(key, f"must be one of {', '.join(choices)}")

    def _read(self, key: str, kind: type, default: Any) -> Any:
        value = self._entry.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            words = {
                str: "text in quotes",
                bool: "true or false",
                list: "a list",
                dict: "an object",
            }
            raise self._error(key, f"must be {words[kind]}")
        return value

    def _expanded(self, where: str, text: str) -> str:
        if self._disabled:
            return text
        if _INPUT.search(text):
            raise self._error(where, "asks for an input, which only an editor can show")

        def value(match: re.Match[str]) -> str:
            escape, name, default = match.groups()
            if escape:
                return match[0][1:]
            found = self._environ.get(name)
            if default is not None and not found:
                return default
            if found is None:
                raise self._error(where, f"names the variable {name}, which is not set")
            if _SECRET_NAME.search(name):
                self._secrets.append(found)
            return found

        return _VARIABLE.sub(value, text)

    def _error(self, key: str, words: str, end: str = ".") -> ConfigurationError:
        where = f"'{key}' of MCP server '{self._name}'" if key else f"MCP server '{self._name}'"
        return ConfigurationError(f"{where} {words}{end}")
