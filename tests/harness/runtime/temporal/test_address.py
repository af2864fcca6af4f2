from __future__ import annotations

import pytest

from web.harness.runtime.temporal.address import TemporalAddress, read_address
from web.harness.values.errors import ConfigurationError


def test_an_address_says_where_workflows_are_and_where_events() -> None:
    text = "temporal://temporal.example.com:7000/chats?events=sqlite:////data/chats.db&queue=blue"
    assert read_address(text) == TemporalAddress(
        "temporal.example.com:7000", "chats", "sqlite:////data/chats.db", "blue"
    )


def test_what_an_address_leaves_out_is_what_a_fresh_server_has() -> None:
    read = read_address("temporal://localhost?events=postgresql://me@db/chats")
    assert read == TemporalAddress("localhost:7233", "default", "postgresql://me@db/chats")


def test_an_address_of_events_may_have_parts_of_its_own() -> None:
    given = "postgresql%3A%2F%2Fme%3Asecret%40db%2Fchats%3Fssl%3Drequire%26x%3D1"
    read = read_address(f"temporal://[::1]:7/a%20b?events={given}&tls=yes")
    assert read.events == "postgresql://me:secret@db/chats?ssl=require&x=1"
    assert (read.target, read.namespace, read.tls) == ("[::1]:7", "a b", True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sqlite:///x.db",
        "temporal://",
        "temporal:///default?events=sqlite:///x.db",
        "temporal://h:port/default?events=sqlite:///x.db",
        "temporal://h:7233/default",
        "temporal://h:7233/default?events=memory",
        "temporal://h:7233/a/b?events=sqlite:///x.db",
        "temporal://h:7233/default?events=sqlite:///x.db&events=sqlite:///y.db",
        "temporal://h:7233/default?events=sqlite:///x.db&retention=3d",
        "temporal://h:7233/default?events=sqlite:///x.db&tls=maybe",
        "temporal://me:secret@h:7233/default?events=sqlite:///x.db",
    ],
)
def test_what_is_no_address_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_address(text)
    assert "secret" not in refused.value.message + refused.value.hint
