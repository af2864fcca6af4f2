"""Every setting of the server in one frozen value; the only reader of the environment.

A setting comes from, in this order: an option of the command line, an environment variable
(`HARNESS_WEB_*`, and the names that the vendors of models use), the default.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from web.harness.mcp.spec import ServerSpec, read_servers
from web.harness.mcp.tokens import FileTokenStore, TokenStore
from web.harness.runtime.addresses import store_of_backend
from web.harness.sessions.opening import FORMS, repeated, store_kind
from web.harness.values.config import DEMO_MODEL, SMALL_DEMO_MODEL, ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.price_list import read_prices
from web.harness.values.usage import Prices
from web.paths import default_data_dir
from web.server_limits import ServerLimits
from web.setting_faults import said_of
from web.ui.access.identity import (
    LocalPerson,
    RequestIdentity,
    check_reach,
    is_loopback,
    read_identity,
)

DEFAULT_OPENAI = ModelName("openai", "gpt-5.4")
DEFAULT_ANTHROPIC = ModelName("anthropic", "claude-sonnet-5")
PROVIDERS = ("openai", "anthropic", "demo")

LogLevel = Literal["debug", "info", "warning", "error"]

Resume = Literal["auto", "ask"]

NO_BACKEND = "none"

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class Settings(BaseSettings):
    """What `harness-web serve` was asked to do. Keys are secrets: no repr shows them."""

    model_config = SettingsConfigDict(
        env_prefix="HARNESS_WEB_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        populate_by_name=True,
        frozen=True,
        extra="forbid",
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)
    """0 means any free port."""
    identity: str | None = None
    """How it is known who asks, `header:NAME[,TENANT]` or `token:FILE`; see `request_identity`."""
    trusted_proxy: Annotated[tuple[str, ...], NoDecode] = ()
    """Addresses of proxies that name people in headers."""
    allow_host: Annotated[tuple[str, ...], NoDecode] = ()
    """Names under which browsers reach this server, beside those of loopback and addresses."""
    model: Annotated[tuple[ModelName, ...], NoDecode] = ()
    """The models that were asked for; `models` is what is offered."""
    data_dir: Path = Field(default_factory=default_data_dir)
    store: str = Field(default="memory", repr=False)
    """Where chats are kept: `memory`, `sqlite:///PATH` or `postgresql://...`. It may hold a
    password, and is not shown."""
    backend: str | None = Field(default=None, repr=False)
    """Where runs are written down at each step: an address of a database, which then is the store
    too, of Temporal, or `none`. Without one it is the store, where that is durable."""
    resume: Resume = "auto"
    """What becomes of runs that were cut off: they go on by themselves, or a person is asked."""
    mcp_config: Path | None = None
    """A file with MCP servers that every chat has."""
    mcp_tokens: Path | None = None
    """A file in which sign-ins to MCP servers outlive this server; without one they end with it."""
    mcp_client_metadata_url: str | None = None
    """Where `/oauth/client-metadata.json` is published for those who sign people in."""
    memory: bool = True
    """Whether new chats use what is remembered beyond a chat; each has a switch of its own."""
    memory_dir: Path | None = None
    """Where that is kept; without one in `memory/` below the data folder."""
    prices: Annotated[dict[ModelName, Prices], NoDecode] = {}
    """What models cost, as JSON: US dollars per million tokens that go in, and that come out."""
    open_browser: bool = Field(default=True, validation_alias="HARNESS_WEB_OPEN")
    log_level: LogLevel = "warning"
    limits: ServerLimits = ServerLimits()

    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, validation_alias="ANTHROPIC_BASE_URL")

    unattended: str | None = Field(default=None, validation_alias="CI")
    """Anything here means that nobody sits at this machine."""
    display: str | None = Field(
        default=None, validation_alias=AliasChoices("DISPLAY", "WAYLAND_DISPLAY")
    )
    """The screen of this machine, where its system names one."""

    @field_validator("trusted_proxy", "allow_host", mode="before")
    @classmethod
    def _read_several(cls, given: Any) -> tuple[str, ...]:
        texts = [given] if isinstance(given, str) else list(given)
        return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())

    @field_validator("allow_host")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _HOST_NAME.fullmatch(name):
                raise ValueError(
                    f"'{name[:80]}' is no name of a host. Write it without http:// and port, "
                    "such as chat.example.com"
                )
        return tuple(name.lower() for name in names)

    @field_validator("port", mode="before")
    @classmethod
    def _is_port(cls, port: Any) -> Any:
        if isinstance(port, str) and not (port.strip().isdecimal() and int(port) <= 65535):
            raise ValueError(f"'{port}' is not a port. A port is a number from 0 to 65535")
        return port

    @field_validator("model", mode="before")
    @classmethod
    def _read_models(cls, given: Any) -> tuple[ModelName, ...]:
        texts = [given] if isinstance(given, str | ModelName) else list(given)
        names: list[str] = []
        for text in texts:
            found = [name for name in str(text).split(",") if name.strip()]
            if not found:
                raise ValueError("this names no model. Write PROVIDER:NAME, such as demo:demo")
            names += found
        return tuple(dict.fromkeys(_known_model(name) for name in names))

    @field_validator("prices", mode="before")
    @classmethod
    def _read_prices(cls, given: Any) -> dict[ModelName, Prices]:
        return read_prices(given) if isinstance(given, str) else given

    @field_validator("data_dir", mode="before")
    @classmethod
    def _is_named(cls, folder: Any) -> Any:
        if isinstance(folder, str) and not folder.strip():
            raise ValueError("this names no folder; '.' is the one you are in")
        return folder

    @field_validator("mcp_config", "mcp_tokens", "memory_dir", mode="before")
    @classmethod
    def _is_a_file(cls, file: Any) -> Any:
        if isinstance(file, str) and not file.strip():
            raise ValueError("this names no file or folder")
        return file

    @field_validator("store")
    @classmethod
    def _is_a_store(cls, store: str) -> str:
        if store_kind(store) is None:
            raise ValueError(f"{repeated(store)} is no store. There are {FORMS}")
        return store

    @field_validator("backend")
    @classmethod
    def _is_a_backend(cls, address: str | None) -> str | None:
        if address not in (None, NO_BACKEND):
            try:
                store_of_backend(address)
            except ConfigurationError as error:
                said = f"{error.message[:1].lower()}{error.message[1:]}"
                raise ValueError(f"{said} {error.hint.rstrip('.')}") from None
        return address

    @field_validator("resume", mode="before")
    @classmethod
    def _is_a_way(cls, resume: Any) -> Any:
        if resume not in get_args(Resume):
            raise ValueError(f"'{resume}' is no way to go on. There are auto and ask")
        return resume

    @field_validator("log_level", mode="before")
    @classmethod
    def _is_level(cls, level: Any) -> Any:
        levels = get_args(LogLevel)
        if level not in levels:
            raise ValueError(f"'{level}' is no level of the log. There are {', '.join(levels)}")
        return level

    @field_validator("data_dir", "mcp_config", "mcp_tokens", "memory_dir")
    @classmethod
    def _is_absolute(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        try:
            return path.expanduser().absolute()
        except RuntimeError:
            raise ValueError(f"'{path}' names a home folder that is not known") from None

    @field_validator("openai_base_url", "anthropic_base_url")
    @classmethod
    def _is_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{repeated(address)} is not one that starts with http:// or https://")
        return address.rstrip("/")

    @field_validator("mcp_client_metadata_url")
    @classmethod
    def _is_published(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme != "https" or not parts.hostname or parts.path in ("", "/"):
            raise ValueError(f"'{address}' is not an https address with a path")
        return address

    @property
    def models(self) -> tuple[ModelName, ...]:
        """The models a chat can pick, the default first; `demo:demo` is always among them."""
        asked = list(self.model)
        if not asked and self.anthropic_api_key:
            asked.append(DEFAULT_ANTHROPIC)
        if not self.model and self.openai_api_key:
            asked.append(DEFAULT_OPENAI)
        return tuple(dict.fromkeys([*asked, DEMO_MODEL]))

    @property
    def chat_store(self) -> str:
        """Where chats are kept: the database of the backend, where one is named."""
        named = self.backend is not None and self.backend != NO_BACKEND
        return store_of_backend(self.backend) if named and self.backend else self.store

    @property
    def run_backend(self) -> str | None:
        """Where runs are written down, None for nowhere."""
        if self.backend is None:
            return self.store if self.store != "memory" else None
        return self.backend if self.backend != NO_BACKEND else None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that requests may have in their Host header, beside those of loopback."""
        own = () if self.identity is None or is_loopback(self.host) else (self.host,)
        return (*self.allow_host, *own)

    @property
    def has_screen(self) -> bool:
        """Whether a browser window would appear before somebody's eyes."""
        if self.unattended:
            return False
        return sys.platform in ("darwin", "win32") or self.display is not None


def read_settings(options: Mapping[str, Any] | None = None) -> Settings:
    """Settings from `options` (field name to value, as the command line has them) and environment.

    Raises ConfigurationError with one line that names the option or variable at fault.
    """
    given = dict(options or {})
    try:
        settings = Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = [str(step) for step in first["loc"]]
        raise ConfigurationError(f"{_source(path, given)}: {said_of(first)}.") from None
    except SettingsError:
        # The one variable that would have to be JSON.
        raise ConfigurationError(
            "HARNESS_WEB_LIMITS: this is not JSON. Each limit has a variable of its own, such as "
            "HARNESS_WEB_LIMITS__MAX_CHATS."
        ) from None
    _check_reach(settings, given)
    if "store" in settings.model_fields_set and settings.chat_store != settings.store:
        raise ConfigurationError(
            f"{_source(['store'], given)}: a backend has a database of its own, and chats are kept "
            "in it too.",
            hint="Leave the store out, or name the same database.",
        )
    return settings


def request_identity(settings: Settings) -> RequestIdentity:
    """How this server knows who asks.

    Raises ConfigurationError in one line for a way that cannot be followed, a file that cannot be
    used, or a server that others could reach and that knows nobody.
    """
    _check_reach(settings, {})
    try:
        return read_identity(settings.identity, settings.trusted_proxy)
    except ConfigurationError as error:
        option = "--trusted-proxy" if settings.identity is None else "--identity"
        raise ConfigurationError(f"{option}: {error.message}", hint=error.hint) from None


def _check_reach(settings: Settings, given: Mapping[str, Any]) -> None:
    if settings.identity is not None:
        return
    try:
        check_reach(settings.host, LocalPerson())
    except ConfigurationError as error:
        source = _source(["host"], given)
        raise ConfigurationError(f"{source}: {error.message}", hint=error.hint) from None
    if settings.allow_host:
        raise ConfigurationError(
            f"{_source(['allow_host'], given)}: others would reach the server by this name, and it "
            "would take them all for one person.",
            hint="Say --identity too.",
        )


def configured_servers(settings: Settings) -> tuple[ServerSpec, ...]:
    """The MCP servers of the configuration file; none without one.

    Raises ConfigurationError with one line that names the file.
    """
    file = settings.mcp_config
    if file is None:
        return ()
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: the file is not text in UTF-8.") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from None
    try:
        return read_servers(text, os.environ)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error.message}", hint=error.hint) from None


def token_store(settings: Settings) -> TokenStore:
    """Where tokens of MCP servers are kept: in memory, or in the file of the settings.

    Raises ConfigurationError with one line for a file that is not safe, or cannot be read.
    """
    if settings.mcp_tokens is None:
        return TokenStore()
    store = FileTokenStore(settings.mcp_tokens)
    store.check()
    return store


def process_environment() -> Mapping[str, str]:
    """The environment of this process, of which MCP servers get their PATH and the like."""
    return dict(os.environ)


def unknown_variables() -> list[str]:
    """Variables of the environment that are named like a setting and are none."""
    prefix = str(Settings.model_config["env_prefix"])
    known = {prefix + name.upper() for name in Settings.model_fields}
    known |= {str(field.validation_alias) for field in Settings.model_fields.values()}
    # A wrong name of a limit is refused when the settings are read.
    limits = f"{prefix}LIMITS__"
    return sorted(
        name
        for name in os.environ
        if name.upper().startswith(prefix)
        and name.upper() not in known
        and not name.upper().startswith(limits)
    )


def _source(path: list[str], given: Mapping[str, Any]) -> str:
    """The option or the variable that a setting came from, as a person wrote it."""
    name = path[0]
    if name in given:
        return "--" + name.replace("_", "-")
    if name in Settings.model_fields:
        return "HARNESS_WEB_" + "__".join(path).upper()
    return name


def _known_model(text: str) -> ModelName:
    try:
        name = ModelName.parse(text)
    except ConfigurationError as error:
        raise ValueError(f"{error.message} {error.hint.rstrip('.')}") from None
    if name.provider not in PROVIDERS:
        raise ValueError(
            f"'{name.provider}' is no provider of models. There are {', '.join(PROVIDERS)}"
        )
    if name.provider == DEMO_MODEL.provider and name not in (DEMO_MODEL, SMALL_DEMO_MODEL):
        raise ValueError(
            f"'{name}' is no model. Those of its provider are {DEMO_MODEL} and {SMALL_DEMO_MODEL}"
        )
    return name
