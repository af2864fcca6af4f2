"""Runs over Temporal: their places, what is counted of them, and workers that perform them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.converter import DataConverter, PayloadCodec

from tests.support.temporal import TemporalServer, new_queue, temporal_server
from web.harness.agent.agent import Agent
from web.harness.loop.state import RunLimits, start_run
from web.harness.runtime.backend import Turn
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.runtime.temporal.payloads import HERE, Claimed, Start, Times, packed
from web.harness.runtime.temporal.workflow import WORKFLOW
from web.harness.sessions.journal import Execution
from web.harness.sessions.sql.store import SqlSessionStore

QUICK = Times(heartbeat=1.0, start=1.0, patience=0.2)
"""For tests that wait until a worker is given up."""

DAY_SECONDS = 86_400


class CountingCodec(PayloadCodec):
    """Changes nothing, and knows the sizes in bytes of all payloads that went out of here."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.sizes += [payload.ByteSize() for payload in payloads]
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)

    @property
    def converter(self) -> DataConverter:
        return dataclasses.replace(DataConverter.default, payload_codec=self)


class TemporalPlace:
    """A database, and a queue of a Temporal server, for backends that share both."""

    def __init__(
        self, folder: Path, server: TemporalServer | None = None, namespace: str = "default"
    ) -> None:
        self.server = server if server is not None else temporal_server()
        self.namespace = namespace
        self.queue = new_queue()
        self.events = f"sqlite:///{folder / 'runs.db'}"

    @property
    def address(self) -> str:
        where = f"{self.server.address}/{self.namespace}"
        return f"temporal://{where}?events={quote(self.events)}&queue={self.queue}"

    async def make_namespace(self) -> None:
        client = await Client.connect(self.server.address)
        made = RegisterNamespaceRequest(namespace=self.namespace)
        made.workflow_execution_retention_period.FromSeconds(DAY_SECONDS)
        await client.workflow_service.register_namespace(made)

    async def workflow(self, run_id: str) -> WorkflowHandle[object, object]:
        client = await Client.connect(self.server.address)
        return client.get_workflow_handle(f"{self.queue}/{run_id}")


async def claim_for_the_dead(place: TemporalPlace, run_id: str) -> None:
    """Has a workflow believe that a process has its run which can say nothing any more."""
    client, own = await Client.connect(place.server.address), f"{place.queue}/{run_id}"
    claimed = Claimed(
        "dead", 1, packed(start_run(run_id, RunLimits(9, None, 2, 1, 0.0, 0.0)).as_json())
    )
    start = Start(run_id, own, HERE, claimed=claimed)
    await client.start_workflow(WORKFLOW, start, id=own, task_queue=own)


def crew_of(
    backend: TemporalBackend, make: Callable[[], Agent]
) -> Callable[[Execution], AbstractAsyncContextManager[Turn]]:
    """Makes an agent for each run, with the conversation that its session has."""

    @asynccontextmanager
    async def crew(execution: Execution) -> AsyncIterator[Turn]:
        submission, stores = execution.submission, await backend.open()
        assert isinstance(stores.sessions, SqlSessionStore)
        settled = await stores.sessions.peek(submission.identity, submission.session_id)
        async with make() as agent:
            agent.memory.replace(settled.history)
            yield Turn(agent, submission)

    return crew
