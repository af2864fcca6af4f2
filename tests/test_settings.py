"""Settings: what is read from where, what is refused, what is never shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import AliasChoices, ValidationError

from tests.support.environment import is_ours
from web.harness.mcp.tokens import FileTokenStore
from web.harness.values.config import DEMO_MODEL, SMALL_DEMO_MODEL, ModelName
from web.harness.values.errors import ConfigurationError
from web.harness.values.usage import Prices
from web.server_limits import ServerLimits
from web.settings import (
    DEFAULT_ANTHROPIC,
    DEFAULT_OPENAI,
    Settings,
    configured_servers,
    read_settings,
    request_identity,
    token_store,
    unknown_variables,
)

SECRET = "sk-not-for-anybodys-eyes"


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Environment variables that are set in the block. conftest.py has removed all others."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]


def test_defaults_serve_the_demo_on_this_machine() -> None:
    settings = read_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8420)
    assert settings.models == (DEMO_MODEL,)


def test_chats_remember_below_the_data_folder_unless_told_otherwise() -> None:
    assert (read_settings().memory, read_settings().memory_dir) == (True, None)
    with (
        variables(HARNESS_WEB_MEMORY="perhaps"),
        pytest.raises(ConfigurationError, match="HARNESS_WEB_MEMORY"),
    ):
        read_settings()
    with (
        variables(HARNESS_WEB_MEMORY_DIR=" "),
        pytest.raises(ConfigurationError, match="HARNESS_WEB_MEMORY_DIR"),
    ):
        read_settings()


def test_the_demo_model_with_a_small_context_can_be_offered() -> None:
    settings = read_settings({"model": ["demo:small"]})
    assert settings.models == (SMALL_DEMO_MODEL, DEMO_MODEL)


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    with variables(
        HARNESS_WEB_HOST="::1",
        HARNESS_WEB_PORT="9000",
        HARNESS_WEB_MODEL="openai:a, anthropic:b",
        HARNESS_WEB_DATA_DIR=str(tmp_path),
        HARNESS_WEB_OPEN="0",
        HARNESS_WEB_LOG_LEVEL="debug",
        HARNESS_WEB_IDENTITY="header:X-User",
        HARNESS_WEB_TRUSTED_PROXY="10.0.0.5, 10.1.0.0/16",
        HARNESS_WEB_ALLOW_HOST="Chat.Example.com",
        HARNESS_WEB_MEMORY="off",
        HARNESS_WEB_MEMORY_DIR=str(tmp_path / "memory"),
        HARNESS_WEB_MCP_CONFIG=str(tmp_path / "servers.json"),
        HARNESS_WEB_MCP_TOKENS=str(tmp_path / "tokens.json"),
        HARNESS_WEB_MCP_CLIENT_METADATA_URL="https://chat.example/client.json",
        HARNESS_WEB_LIMITS__MAX_CHATS="7",
        HARNESS_WEB_PRICES='{"openai:a": [3, 15]}',
        OPENAI_API_KEY=SECRET,
        OPENAI_BASE_URL="http://127.0.0.1:11434/v1/",
    ):
        settings = read_settings()
    assert (settings.host, settings.port, settings.data_dir) == ("::1", 9000, tmp_path)
    assert settings.models == (ModelName("openai", "a"), ModelName("anthropic", "b"), DEMO_MODEL)
    assert settings.open_browser is False
    assert settings.mcp_config == tmp_path / "servers.json"
    assert settings.mcp_tokens == tmp_path / "tokens.json"
    assert settings.mcp_client_metadata_url == "https://chat.example/client.json"
    assert settings.log_level == "debug"
    assert settings.identity == "header:X-User"
    assert settings.trusted_proxy == ("10.0.0.5", "10.1.0.0/16")
    assert settings.allow_host == ("chat.example.com",)
    assert (settings.memory, settings.memory_dir) == (False, tmp_path / "memory")
    assert settings.limits == ServerLimits(max_chats=7)
    assert settings.prices == {ModelName("openai", "a"): Prices(3.0, 15.0)}
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == SECRET
    assert settings.openai_base_url == "http://127.0.0.1:11434/v1"


def test_an_option_wins_over_the_environment() -> None:
    with variables(HARNESS_WEB_PORT="9000", HARNESS_WEB_MODEL="openai:a"):
        settings = read_settings({"port": "9001", "model": ["demo:demo"]})
    assert (settings.port, settings.models) == (9001, (DEMO_MODEL,))


def test_an_empty_variable_counts_as_not_set() -> None:
    with variables(HARNESS_WEB_PORT="", OPENAI_API_KEY="", HARNESS_WEB_MODEL=""):
        settings = read_settings()
    assert (settings.port, settings.models) == (8420, (DEMO_MODEL,))


@pytest.mark.parametrize(
    ("keys", "offered"),
    [
        ({"OPENAI_API_KEY": SECRET}, (DEFAULT_OPENAI, DEMO_MODEL)),
        ({"ANTHROPIC_API_KEY": SECRET}, (DEFAULT_ANTHROPIC, DEMO_MODEL)),
        (
            {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET},
            (DEFAULT_ANTHROPIC, DEFAULT_OPENAI, DEMO_MODEL),
        ),
    ],
)
def test_a_key_makes_its_vendor_the_default(
    keys: dict[str, str], offered: tuple[ModelName, ...]
) -> None:
    with variables(**keys):
        assert read_settings().models == offered


def test_models_keep_their_order_and_stand_once() -> None:
    asked = ["openai:llama3:8b,demo:demo", "anthropic:c", "openai:llama3:8b"]
    with variables(OPENAI_API_KEY=SECRET):
        models = read_settings({"model": asked}).models
    assert [str(model) for model in models] == ["openai:llama3:8b", "demo:demo", "anthropic:c"]


def test_no_secret_is_shown() -> None:
    with variables(OPENAI_API_KEY=SECRET, ANTHROPIC_API_KEY=SECRET):
        settings = read_settings()
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert SECRET not in shown


def test_a_refused_address_of_a_model_does_not_repeat_its_password() -> None:
    address = f"ftp://me:{SECRET}@host/"
    with variables(ANTHROPIC_BASE_URL=address), pytest.raises(ConfigurationError) as refusal:
        read_settings()
    assert "ANTHROPIC_BASE_URL" in refusal.value.message
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("store", "sqlite:chats", "--store: 'sqlite:chats' is no store."),
        ("store", f"mysql://me:{SECRET}@there", "--store: this address is no store."),
        ("backend", "redis://there", "--backend: 'redis://there' is no backend."),
        ("backend", f"redis://me:{SECRET}@there", "--backend: this address is no backend."),
        ("backend", "temporal://", "--backend: this is no address of Temporal."),
        ("openai_base_url", "there:80", "'there:80' is not one that starts with http://"),
    ],
)
def test_a_refused_address_is_repeated_where_no_password_is_in_it(
    option: str, value: str, words: str
) -> None:
    with variables(), pytest.raises(ConfigurationError) as refusal:
        read_settings({option: value})
    assert words in refusal.value.message
    assert SECRET not in str(refusal.value)


def test_a_proxy_without_identity_is_refused_under_its_own_name() -> None:
    with variables():
        settings = read_settings({"trusted_proxy": ["10.0.0.5"]})
    with pytest.raises(ConfigurationError, match=r"^--trusted-proxy: "):
        request_identity(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HARNESS_WEB_PORT", "eighty"),
        ("HARNESS_WEB_HOST", "0.0.0.0"),
        ("HARNESS_WEB_MODEL", "nobody:knows"),
        ("HARNESS_WEB_MODEL", "demo:other"),
        ("HARNESS_WEB_MODEL", " , "),
        ("HARNESS_WEB_DATA_DIR", " "),
        ("HARNESS_WEB_MCP_CONFIG", " "),
        ("HARNESS_WEB_MCP_CONFIG", "~no-such-person/servers.json"),
        ("HARNESS_WEB_MCP_TOKENS", " "),
        ("HARNESS_WEB_MCP_CLIENT_METADATA_URL", "http://chat.example/client.json"),
        ("HARNESS_WEB_MCP_CLIENT_METADATA_URL", "https://chat.example/"),
        ("HARNESS_WEB_OPEN", "perhaps"),
        ("HARNESS_WEB_LOG_LEVEL", "loud"),
        ("HARNESS_WEB_DATA_DIR", "~no-such-person/chats"),
        ("HARNESS_WEB_LIMITS__MAX_CHATS", "0"),
        ("HARNESS_WEB_PRICES", "3 and 15"),
        ("HARNESS_WEB_PRICES", '{"openai:a": [3]}'),
        ("OPENAI_BASE_URL", "localhost:11434"),
    ],
)
def test_a_refusal_names_the_variable_in_one_line(name: str, value: str) -> None:
    with variables(**{name: value}), pytest.raises(ConfigurationError) as refusal:
        read_settings()
    assert refusal.value.message.startswith(f"{name}: ")
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "LIMITS__MAX_CHATS",
            "many",
            "'many' is not allowed. A limit is a whole number, 1 or more.",
        ),
        ("LIMITS__MAX_CHATS", "0", "'0' is not allowed."),
        ("LIMITS__MAX_CHATS", "1.5", "'1.5' is not allowed."),
        ("LIMITS__MAX_CHATS", "9" * 5_000, "A limit is a whole number"),
        ("LIMITS__MAX_CHATS__MORE", "5", "A limit is a whole number"),
        ("LIMITS__MAX_CHAT", "5", "there is no limit of this name. Did you mean MAX_CHATS?"),
        ("LIMITS__", "5", "there is no limit of this name. README lists them all."),
        ("LIMITS", "many", "Each limit has a variable of its own"),
        ("LIMITS", "[1]", "A limit is a whole number"),
        ("MEMORY", "perhaps", "'perhaps' is neither on nor off."),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_allowed(
    name: str, value: str, words: str
) -> None:
    with variables(**{f"HARNESS_WEB_{name}": value}), pytest.raises(ConfigurationError) as refusal:
        read_settings()
    message = refusal.value.message
    assert message.startswith(f"HARNESS_WEB_{name.removesuffix('__MORE')}: ")
    assert words in message
    assert "nput" not in message
    assert len(message) < 200


def test_mcp_servers_come_from_a_file_and_take_variables(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {"time": {"command": "run", "env": {"A_KEY": "${A_KEY}"}}}}')
    with variables(A_KEY=SECRET):
        (spec,) = configured_servers(read_settings({"mcp_config": str(file)}))
    assert (spec.name, spec.kind, spec.command) == ("time", "stdio", "run")
    assert spec.env == {"A_KEY": SECRET}
    assert SECRET not in repr(spec)
    assert configured_servers(read_settings()) == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff", "not text in UTF-8"),
        (b"{", "is not JSON"),
        (b'{"mcpServers": {"a": {"comand": "run"}}}', "'comand' of MCP server 'a'"),
        (b'{"mcpServers": {"a": {"url": "${NOT_SET_HERE}"}}}', "NOT_SET_HERE"),
    ],
)
def test_a_file_of_servers_that_cannot_be_used_is_named_in_one_line(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "servers.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as refusal:
        configured_servers(read_settings({"mcp_config": str(file)}))
    assert refusal.value.message.startswith(str(file))
    assert words in refusal.value.message
    assert "\n" not in refusal.value.message


def test_tokens_are_kept_in_a_file_only_if_it_is_safe(tmp_path: Path) -> None:
    assert not isinstance(token_store(read_settings()), FileTokenStore)
    file = tmp_path / "tokens.json"
    assert isinstance(token_store(read_settings({"mcp_tokens": str(file)})), FileTokenStore)
    file.write_text("{}")
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="can be read by others"):
        token_store(read_settings({"mcp_tokens": str(file)}))


def test_a_variable_that_is_no_setting_is_found() -> None:
    with variables(
        HARNESS_WEB_FOO="1",
        HARNESS_WEB_PORT__FOO="1",
        HARNESS_WEB_PORT="1",
        HARNESS_WEB_OPEN="0",
        HARNESS_WEB_LIMITS__MAX_CHATS="7",
        OPENAI_API_KEY=SECRET,
    ):
        # The tests' own variable for their browser may be there as well.
        found = set(unknown_variables()) - {"HARNESS_WEB_CHROMIUM"}
    assert found == {"HARNESS_WEB_FOO", "HARNESS_WEB_PORT__FOO"}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1"])
def test_loopback_is_served(host: str) -> None:
    assert read_settings({"host": host}).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.x"])
def test_what_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="--host"):
        read_settings({"host": host})


def test_with_an_identity_others_can_reach_it_by_address_and_by_the_names_it_is_told() -> None:
    settings = read_settings({"host": "0.0.0.0", "identity": "token:x"})
    assert settings.hosts == ("0.0.0.0",)
    named = {"host": "10.0.0.1", "identity": "token:x", "allow_host": ["a.example", "b"]}
    assert read_settings(named).hosts == ("a.example", "b", "10.0.0.1")


@pytest.mark.parametrize("name", ["https://a.example", "a.example:80", "a b", "-a", "*"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="--allow-host"):
        read_settings({"identity": "token:x", "allow_host": [name]})


def test_a_name_without_an_identity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--allow-host: others would reach"):
        read_settings({"allow_host": ["a.example"]})


def test_a_window_opens_only_before_somebodys_eyes() -> None:
    with variables(DISPLAY=":0"):
        assert read_settings().has_screen
        with variables(CI="true"):
            assert not read_settings().has_screen


def test_no_setting_of_the_person_who_runs_the_tests_reaches_them() -> None:
    fields = Settings.model_fields.items()
    names = {str(field.validation_alias or f"HARNESS_WEB_{name}".upper()) for name, field in fields}
    aliases = Settings.model_fields["display"].validation_alias
    assert isinstance(aliases, AliasChoices)
    names = names - {str(aliases)} | {str(name) for name in aliases.choices}
    assert {name for name in names if not is_ours(name)} == set()
    assert {name for name in os.environ if is_ours(name)} == set()


def test_settings_do_not_change() -> None:
    settings = Settings(limits=ServerLimits(undo_seconds=1))
    with pytest.raises(ValidationError):
        settings.port = 1
    with pytest.raises(ValidationError):
        settings.limits.undo_seconds = 2


def test_how_much_files_and_attachments_may_be_is_a_setting() -> None:
    names = {
        **{"MAX_ATTACHMENTS": 3, "MAX_ATTACHMENT_CHARS": 4, "MAX_PICTURE_BYTES": 5},
        **{"MAX_PICTURES_BYTES": 6, "MAX_FILE_BYTES": 7, "MAX_FILES": 8, "MAX_FILES_BYTES": 9},
        "KEPT_VERSIONS": 2,
    }
    with variables(**{f"HARNESS_WEB_LIMITS__{name}": str(most) for name, most in names.items()}):
        limits = read_settings().limits
    assert limits == ServerLimits(**{name.lower(): most for name, most in names.items()})


def test_where_chats_are_kept_is_a_setting_that_no_repr_shows() -> None:
    assert read_settings().store == "memory"
    address = "postgresql://me:sesame@there/chats"
    settings = read_settings({"store": address})
    assert settings.store == address
    assert "sesame" not in repr(settings)
    for wrong in ("mysql://x", "sqlite:", "sqlite:///", "", "Memory"):
        with pytest.raises(ConfigurationError, match="--store"):
            read_settings({"store": wrong})


def test_runs_are_written_down_where_the_store_is_a_database_unless_that_is_turned_off() -> None:
    address = "sqlite:////tmp/chats.sqlite3"
    assert read_settings().run_backend is None
    assert read_settings({"store": address}).run_backend == address
    assert read_settings({"store": address, "backend": "none"}).run_backend is None
    assert read_settings({"backend": "none"}).chat_store == "memory"


def test_a_backend_says_where_chats_are_kept_too() -> None:
    address = "postgresql://me:sesame@there/chats"
    assert read_settings({"backend": address}).chat_store == address
    assert read_settings({"backend": address, "store": address}).run_backend == address
    temporal = "temporal://there:7233/default?events=sqlite:////tmp/chats.sqlite3"
    with variables(HARNESS_WEB_BACKEND=temporal):
        settings = read_settings()
    assert (settings.run_backend, settings.chat_store) == (temporal, "sqlite:////tmp/chats.sqlite3")


@pytest.mark.parametrize("store", ["memory", "sqlite:////tmp/others.sqlite3"])
def test_a_store_beside_another_backend_is_refused(store: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--store: a backend has a database"):
        read_settings({"store": store, "backend": "postgresql://me:sesame@there/chats"})


@pytest.mark.parametrize("backend", ["memory", "mysql://me:sesame@there", "temporal://me:sesame@x"])
def test_what_is_no_backend_is_refused_and_not_repeated(backend: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--backend: ") as refused:
        read_settings({"backend": backend})
    assert "sesame" not in str(refused.value) + refused.value.hint


def test_how_cut_off_answers_go_on_is_one_of_two_ways() -> None:
    assert read_settings().resume == "auto"
    with variables(HARNESS_WEB_RESUME="ask"):
        assert read_settings().resume == "ask"
    with pytest.raises(ConfigurationError, match=r"^--resume: 'never' is no way to go on"):
        read_settings({"resume": "never"})
