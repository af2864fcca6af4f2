"""The places that every body of a contract runs over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.examples.custom_store import MappingStore
from tests.support.steps import runs_of
from tests.support.stores import KINDS, MemoryPlace, SqlPlace, new_place
from web.harness.sessions.journal import Executions
from web.harness.sessions.opening import Stores
from web.harness.sessions.store import SessionStore


@pytest.fixture(params=KINDS)
async def any_place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[MemoryPlace | SqlPlace]:
    place = await new_place(request.param, tmp_path)
    yield place
    await place.aclose()


class CustomPlace(MemoryPlace):
    """The store that the README shows."""

    def __init__(self) -> None:
        super().__init__()
        self._custom = MappingStore({})

    async def sessions(self) -> SessionStore:
        return self._custom


@pytest.fixture(params=(*KINDS, "custom"))
async def session_place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[MemoryPlace | SqlPlace]:
    place = CustomPlace() if request.param == "custom" else await new_place(request.param, tmp_path)
    yield place
    await place.aclose()


@pytest.fixture
async def runs(here: Stores) -> Executions:
    return runs_of(here)
