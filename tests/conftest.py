"""What every test can count on."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.browser import launched
from tests.support.environment import is_ours

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from tests.support.stores import SqlPlace
    from web.harness.sessions.opening import Stores

# Thousands of tests are made at the start and stay till the end. Until they are there nothing is
# looked through for garbage, and they never are: it took a quarter of the time that this takes.
gc.disable()

# Tests are compiled once, also where others do not keep what they compile.
sys.dont_write_bytecode = False

# How long one example takes depends on what else the machine does.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("full", deadline=None)

# No test may use the keys, or depend on the settings, of the person who runs it.
for _name in [name for name in os.environ if is_ours(name)]:
    del os.environ[_name]


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if config.option.markexpr == "not full" else "full")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    # What is left goes with the process: pytest would look through all of it five times.
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    """One real browser for all tests of a process; each test takes contexts of its own."""
    async with launched() as browser:
        yield browser


@pytest.fixture
async def page(chromium: Browser) -> AsyncIterator[Page]:
    """An empty page in a context of its own, with waits of at most ten seconds."""
    context = await chromium.new_context()
    context.set_default_timeout(10_000)
    yield await context.new_page()
    await context.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """The kinds of database that a test with `place` runs over; `stores.on` names others."""
    return str(request.param)


@pytest.fixture
async def place(database_kind: str, tmp_path: Path) -> AsyncIterator[SqlPlace]:
    """A new database, opened anew for each that asks."""
    from tests.support.stores import new_database

    place = await new_database(database_kind, tmp_path)
    yield place
    await place.aclose()


@pytest.fixture
async def here(place: SqlPlace) -> Stores:
    """The stores of one server on `place`."""
    return await place.backend()
