"""A workflow hears of everything that was written, whatever happens while it is told."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from web.harness.runtime.temporal.claim import Claim
from web.harness.runtime.temporal.connection import Workflows
from web.harness.sessions.opening import open_stores
from web.harness.values.errors import StoreError

pytestmark = pytest.mark.anyio


async def test_what_happens_while_a_workflow_is_told_it_is_told_too(tmp_path: Path) -> None:
    began, answered, twice = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def tell(run_id: str) -> None:
        if began.is_set():
            twice.set()
        began.set()
        await answered.wait()

    stores = await open_stores(f"sqlite:///{tmp_path / 'a.db'}", now=time.time)
    claim = Claim(stores, lambda execution: nullcontext(), tell, "run")  # type: ignore[arg-type, return-value]
    claim.tell()
    await asyncio.wait_for(began.wait(), 5)
    claim.tell()
    answered.set()
    await asyncio.wait_for(twice.wait(), 5)
    await claim.aclose()
    await stores.aclose()


class Away(Workflows):
    """Of a Temporal that cannot be reached the first times."""

    def __init__(self, times: int) -> None:
        super().__init__(None, "queue")  # type: ignore[arg-type]
        self.left = times
        self.told: list[tuple[str, str]] = []

    async def tell(self, run_id: str, key: str = "") -> None:
        self.left -= 1
        if self.left >= 0:
            raise StoreError("Temporal cannot be reached.", transient=True)
        self.told.append((run_id, key))


async def test_a_workflow_that_could_not_be_told_is_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workflows = Away(3)
    await asyncio.wait_for(workflows.tell_at_last("run", "key", again=0), 5)
    assert workflows.told == [("run", "key")]
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
