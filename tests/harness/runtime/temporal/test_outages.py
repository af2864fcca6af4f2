"""Temporal is gone for longer than a worker may be silent: a call that goes on is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.outages import Payments, outage, paying
from tests.support.temporal import TemporalServer, new_temporal_server
from tests.support.temporal_runs import TemporalPlace

pytestmark = [pytest.mark.anyio, pytest.mark.full]


@pytest.fixture
def server() -> Iterator[TemporalServer]:
    server = new_temporal_server()
    yield server
    server.stop()


@pytest.mark.parametrize("workers", [0, 1, 3])
async def test_calls_that_may_not_be_repeated_outlive_an_outage(
    server: TemporalServer, tmp_path: Path, workers: int
) -> None:
    place, payments = TemporalPlace(tmp_path, server), Payments()
    async with paying(place, payments, workers) as handle:
        async with asyncio.timeout(120):
            await outage(place, handle.run_id)
        payments.go_on.set()
        result = await asyncio.wait_for(handle.result(), 60)
    assert result.text == "Both have it."
    assert (sorted(payments.paid), payments.cut) == (["Ann", "Bob"], 0)
