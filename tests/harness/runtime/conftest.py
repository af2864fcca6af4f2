"""A backend for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.harness.runtime.runtimes import database
from web.harness.runtime.sql import SQLiteBackend


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[SQLiteBackend]:
    backend = SQLiteBackend(database(tmp_path))
    yield backend
    await backend.aclose()
