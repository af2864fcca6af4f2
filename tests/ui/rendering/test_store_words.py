"""What the page promises of a restart is what the server was started to do."""

from __future__ import annotations

import pytest

from web.ui.rendering.store_words import store_words


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_whether_an_answer_goes_on_by_itself_is_said(kind: str) -> None:
    by_itself = store_words(kind, written_down=True, asks=False)
    assert "goes on" in by_itself
    assert "say so" not in by_itself
    assert "once you say so" in store_words(kind, written_down=True, asks=True)
    assert "stays incomplete" in store_words(kind, written_down=False, asks=True)
