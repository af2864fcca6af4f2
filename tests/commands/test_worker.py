"""Workers of chats: what performs a run that a server of chats left to Temporal."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.environment import CHECKOUT, environment
from tests.support.temporal_runs import TemporalPlace
from web.chats.records.records import ChatRecord
from web.chats.storage.stored_records import StoredChatRecords
from web.chats.tasks import TaskOwner
from web.harness.agent.agent import Agent
from web.harness.runtime.backend import Performed, Turn, executions_of
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.journal import Submission
from web.harness.sessions.opening import Stores
from web.harness.values.errors import HarnessError, StoreError, first_error
from web.settings import read_settings
from web.worker import working

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> TemporalPlace:
    return TemporalPlace(tmp_path)


@asynccontextmanager
async def server(place: TemporalPlace) -> AsyncIterator[tuple[TemporalBackend, Stores]]:
    """What a server of chats has, with one chat in it that is called `chat`."""
    backend = TemporalBackend(place.address, workers="elsewhere")
    stores, tasks = await backend.open(), TaskOwner()
    try:
        async with tasks:
            record = ChatRecord("chat", "demo:demo", time.time(), 1.0)
            await StoredChatRecords(stores.records, tasks).put(LOCAL_IDENTITY, record)
        yield backend, stores
    finally:
        await backend.aclose()


async def performed(backend: TemporalBackend, chat: str, text: str) -> Performed:
    submission = Submission(f"run-{chat}", LOCAL_IDENTITY, chat, "r", text)
    await executions_of(await backend.open()).submit(submission)
    async with Agent() as unused:
        return await asyncio.wait_for(backend.perform(Turn(unused, submission)), 60)


async def test_a_worker_makes_the_agent_of_a_chat_from_its_record(
    place: TemporalPlace, tmp_path: Path
) -> None:
    settings = read_settings({"store": place.events, "data_dir": tmp_path / "data"})
    async with server(place) as (backend, _), working(settings, place.address):
        done = await performed(backend, "chat", "Calculate 3 * 14")
        assert done.result.status == "completed"
        assert "42" in done.result.text
        assert done.recorded is not None
        # It has the tools of every chat.
        assert any(message.role == "tool" for message in done.recorded.messages)
        with pytest.raises(HarnessError, match="not there any more") as refused:
            await performed(backend, "another", "Hello")
        assert refused.value.code == "not_found"


async def test_a_worker_whose_namespace_is_not_there_does_not_begin(tmp_path: Path) -> None:
    nowhere = TemporalPlace(tmp_path, namespace="nowhere")
    settings = read_settings({"store": nowhere.events, "data_dir": tmp_path / "data"})
    with pytest.raises(ExceptionGroup) as group:
        async with working(settings, nowhere.address):
            raise AssertionError("it has begun")
    refused = first_error(group.value)
    assert isinstance(refused, StoreError)
    assert refused.code == "temporal_no_namespace"


@pytest.mark.full
async def test_the_command_works_until_it_is_ended(place: TemporalPlace, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "web", "worker", "--backend", place.address]
    with subprocess.Popen(  # noqa: ASYNC220
        [*command, "--data-dir", str(tmp_path / "data")],
        cwd=CHECKOUT,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert "Working on" in await asyncio.to_thread(process.stdout.readline)
            async with server(place) as (backend, _):
                done = await performed(backend, "chat", "Calculate 3 * 14")
            assert "42" in done.result.text
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("backend", "words", "code"),
    [
        ("sqlite:///x.db", "--backend: workers are for temporal:// alone.", 2),
        pytest.param(
            "temporal://127.0.0.1:1/default?events=sqlite:///x.db",
            "Temporal cannot be reached",
            1,
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_worker_that_cannot_begin_says_so_in_one_line(
    tmp_path: Path, backend: str, words: str, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "web", "worker", "--backend", backend, "--data-dir", str(tmp_path)],
        cwd=tmp_path,
        # What a server on this machine is told is not said to the worker.
        env=environment(PYTHONPATH=str(CHECKOUT), HARNESS_WEB_BACKEND="sqlite:///other.db"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert done.stderr.startswith(f"harness-web: {words}")
    assert done.stderr.count("\n") == 1
