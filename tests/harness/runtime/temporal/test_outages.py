"""Temporal is gone for longer than a worker may be silent, or has lost all that it knew: a call
that goes on is not lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kept import until
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


async def test_a_call_that_ends_in_an_outage_holds_its_run_up_for_seconds(
    server: TemporalServer, tmp_path: Path
) -> None:
    place, payments = TemporalPlace(tmp_path, server), Payments()
    async with paying(place, payments, 0, times=None) as handle:
        server.kill()
        payments.go_on.set()
        result = asyncio.ensure_future(handle.result())
        # Until Temporal's library has given up telling that the calls have ended.
        await asyncio.wait({result}, timeout=25)
        assert not result.done()
        server.start()
        assert (await asyncio.wait_for(result, 30)).text == "Both have it."
    assert (sorted(payments.paid), payments.cut) == (["Ann", "Bob"], 0)


@pytest.mark.parametrize("workers", [0, 1])
async def test_calls_outlive_a_temporal_that_comes_back_without_the_namespace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    server = new_temporal_server(in_memory=True)
    place, payments = TemporalPlace(tmp_path, server, namespace="payments"), Payments()
    await place.make_namespace()

    async def told() -> bool:
        return "Runs wait: Temporal has no namespace" in caplog.text

    try:
        async with paying(place, payments, workers) as handle:
            server.kill()
            server.start()
            assert await until(told, 20)
            await place.make_namespace()
            payments.go_on.set()
            result = await asyncio.wait_for(handle.result(), 60)
        assert result.text == "Both have it."
        assert (sorted(payments.paid), payments.cut) == (["Ann", "Bob"], 0)
        assert not [each for each in caplog.records if each.exc_info]
        assert all(each.levelno < logging.ERROR for each in caplog.records)
    finally:
        server.stop()
