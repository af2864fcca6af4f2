"""The stage that most tests of the page play on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import Stage, staged

if TYPE_CHECKING:
    from playwright.async_api import Browser

expect.set_options(timeout=10_000)


@pytest.fixture
async def stage(chromium: Browser, tmp_path: Path) -> AsyncIterator[Stage]:
    """One server with nothing in it yet, and one browser context with script."""
    async with staged(chromium, tmp_path) as made:
        yield made


@pytest.fixture
async def plain(chromium: Browser, tmp_path: Path) -> AsyncIterator[Stage]:
    """As `stage`, in a browser that runs no script."""
    async with staged(chromium, tmp_path, java_script_enabled=False) as made:
        yield made
