"""What every page says of a store that does not work."""

from __future__ import annotations

from web.chats.storage.loading import told_of
from web.harness.values.errors import StoreError


def test_temporal_that_is_away_is_told_of_without_the_words_of_the_connection() -> None:
    failure = StoreError(
        "Temporal cannot be reached: tcp connect error.", code="temporal_unreachable"
    )
    told = told_of(failure)
    assert [*told] == ["z-temporal"]
    assert told["z-temporal"].text == (
        "Temporal does not answer. Messages are kept, and answered once it does."
    )


def test_a_namespace_that_is_not_there_is_named() -> None:
    failure = StoreError("Temporal has no namespace 'a'.", code="temporal_no_namespace")
    assert told_of(failure)["z-temporal"].text.startswith("Temporal has no namespace 'a'. ")


def test_a_database_that_is_away_has_a_line_of_its_own() -> None:
    told = told_of(StoreError("It is away.", hint="Start it.", code="store_unavailable"))
    assert [(id, each.detail) for id, each in told.items()] == [("z-store", "Start it.")]
