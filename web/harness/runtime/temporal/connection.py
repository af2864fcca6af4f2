"""Temporal as its clients see it: workflows are started, told and waited for."""

from __future__ import annotations

import asyncio
import atexit
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cache
from typing import TypeVar

from temporalio.api.enums.v1 import (
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
)
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from web.harness.agent.pausing import RunPaused
from web.harness.runtime.backend import Missing
from web.harness.runtime.temporal.address import TemporalAddress
from web.harness.runtime.temporal.payloads import Start
from web.harness.runtime.temporal.workflow import (
    ANSWERED,
    CLAIM,
    PAUSED,
    REFUSED,
    TAKEN,
    WORKFLOW,
)
from web.harness.values.errors import HarnessError, StoreError

T = TypeVar("T")

log = logging.getLogger(__name__)

UNREACHABLE = "temporal_unreachable"

NO_NAMESPACE = "temporal_no_namespace"

CONNECT = timedelta(seconds=10)

LOOK = timedelta(seconds=5)
"""For an answer to a question that will be asked again."""

DECIDE = timedelta(seconds=5)
"""For a worker to say what a workflow does next; then another is asked."""

AGAIN = 1.0
"""Seconds after which a workflow is told again that could not be told."""

EXIT_SECONDS = 0.2

POLL_SECONDS = 75.0
"""A worker asks for tasks at least once in this time."""

PAUSES = (0.5, 1.0, 2.0, 5.0)
"""Seconds before a server that was reached before, and is not now, is asked again."""

_FINAL = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)


_MISSING: dict[str, Missing] = {UNREACHABLE: "temporal", NO_NAMESPACE: "namespace"}


async def connect(address: TemporalAddress, converter: DataConverter) -> Client:
    """A client that is connected. Raises StoreError (`temporal_unreachable`)."""
    try:
        return await Client.connect(
            address.target,
            namespace=address.namespace,
            data_converter=converter,
            tls=address.tls,
            connect_timeout=CONNECT,
            runtime=_runtime(),
        )
    except RuntimeError as error:
        raise _unreachable(str(error)) from error


@cache
def _runtime() -> Runtime:
    """The threads of all clients and workers of this process.

    What they log goes where all of it goes, and not to the standard output; what they know of this
    machine stays here. They let go of Python objects a moment after they are done, and a process
    that ends in that moment is aborted (seen once in five times): hence the pause at its end.
    """
    atexit.register(time.sleep, EXIT_SECONDS)
    forwarded = LogForwardingConfig(logging.getLogger("temporalio.core"))
    filtered = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(
        telemetry=TelemetryConfig(logging=LoggingConfig(filtered, forwarded)),
        worker_heartbeat_interval=None,
        disable_environment_info=True,
    )


async def patiently(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """What it gives, trying again for so long while Temporal cannot be reached: it may be starting.

    Raises what it raised last. The same for a namespace that may be made meanwhile.
    """
    until, failures = time.monotonic() + seconds, 0
    while True:
        try:
            return await work()
        except StoreError as error:
            if not missing_of(error) or time.monotonic() >= until:
                raise
        await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
        failures += 1


class Workflows:
    """The workflows of runs. `queue` is that of the address: it keeps installations apart."""

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._queue = queue

    def id_of(self, run_id: str) -> str:
        return f"{self._queue}/{run_id}"

    async def run(self, start: Start, *, tell: bool, patience: float) -> None:
        """Starts a run's workflow, or finds the one under way, and waits for its end.

        With `tell` it looks for answers: they may have come while nobody was there to tell it.
        `patience` are the seconds that a server may take until it can be reached.

        Once it is started, whatever is wrong with the server is waited for: the journal has the
        run, and a call may be under way that must not be cut off. Raises RunPaused, HarnessError
        where no worker can perform the run, and StoreError where it could not be started.
        """
        handle = await patiently(lambda: self._started(start, tell), patience)
        failures, is_lost = 0, False
        while True:
            try:
                if is_lost:
                    handle, is_lost = await self._started(start, tell=False), False
                outcome = await handle.result()
                break
            except WorkflowFailureError as error:
                raise _as_harness_error(error) from error
            except RPCError as error:
                # What is started anew goes on from the journal.
                is_lost = _is_of_nothing(error)
                log.warning("Temporal does not answer: %s", error.message)
            except StoreError as error:
                log.warning("A run is not started anew yet: %s", error.message)
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1
        if outcome == PAUSED:
            raise RunPaused

    async def queue_of(self, run_id: str) -> str:
        """The task queue of a run's workflow that is under way; '' where none is.

        Raises StoreError where Temporal cannot be reached.
        """
        try:
            found = await self._client.get_workflow_handle(self.id_of(run_id)).describe()
        except RPCError as error:
            if _is_of_nothing(error):
                return ""
            raise _of_rpc(error) from error
        return found.task_queue if found.status == WorkflowExecutionStatus.RUNNING else ""

    async def has_workers(self) -> bool:
        """Whether somebody serves the queue of the address, or did so a minute ago.

        Raises StoreError where Temporal cannot be reached, or has not the namespace.
        """
        since = time.time() - POLL_SECONDS
        pollers = (await self._described()).pollers
        return any(each.last_access_time.ToSeconds() > since for each in pollers)

    async def untaken(self, run_id: str) -> frozenset[str]:
        """What of a run's workflow a worker has to take up next, under names that stay the same for
        as long as none does. A worker that lives takes it up at once.

        Raises StoreError where Temporal cannot be reached.
        """
        handle = self._client.get_workflow_handle(self.id_of(run_id))
        try:
            found = (await handle.describe(rpc_timeout=LOOK)).raw_description
        except RPCError as error:
            if _is_of_nothing(error):
                return frozenset()
            raise _of_rpc(error) from error
        claims = (
            f"claim {each.activity_id}"
            for each in found.pending_activities
            if each.activity_type.name == CLAIM
            and each.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
        )
        decision = found.pending_workflow_task
        waits = decision.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
        since = decision.scheduled_time.ToNanoseconds()
        return frozenset((*claims, f"decision {since}") if waits else claims)

    async def check(self) -> None:
        """Raises StoreError where Temporal cannot be reached, or has not the namespace.

        Unlike the other calls it tells so at once: they try again for ten seconds.
        """
        await self._described()

    async def _described(self) -> DescribeTaskQueueResponse:
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=self._queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        try:
            service = self._client.workflow_service
            return await service.describe_task_queue(request, timeout=LOOK)
        except RPCError as error:
            raise _of_rpc(error) from error

    async def tell(self, run_id: str, key: str = "") -> None:
        """Tells a workflow that something was written; one that is not there is no matter.

        Raises StoreError where Temporal cannot be reached.
        """
        await self._signal(run_id, ANSWERED, [key])

    async def tell_at_last(self, run_id: str, key: str = "", *, again: float = AGAIN) -> None:
        """The same, trying again each so many seconds for as long as Temporal cannot be reached."""
        failed = False
        while True:
            try:
                return await self.tell(run_id, key)
            except StoreError as error:
                if not failed:
                    log.warning("A workflow cannot be told of its run now: %s", error.message)
                failed = True
                await asyncio.sleep(again)

    async def take(self, run_id: str) -> None:
        """Tells a workflow that whoever had claimed its run is gone; see `RunWorkflow.taken`.

        Raises StoreError where Temporal cannot be reached.
        """
        await self._signal(run_id, TAKEN, [])

    async def end(self, run_id: str, why: str) -> None:
        """Ends the workflow of a run that has ended otherwise; one that is not there is no matter.

        Raises StoreError where Temporal cannot be reached.
        """
        handle = self._client.get_workflow_handle(self.id_of(run_id))
        try:
            await handle.terminate(reason=why)
        except RPCError as error:
            if not _is_of_nothing(error):
                raise _of_rpc(error) from error

    async def _signal(self, run_id: str, name: str, args: list[str]) -> None:
        await self.check()
        handle = self._client.get_workflow_handle(self.id_of(run_id))
        try:
            await handle.signal(name, args=args)
        except RPCError as error:
            if not _is_of_nothing(error):
                raise _of_rpc(error) from error

    async def _started(self, start: Start, tell: bool) -> WorkflowHandle[object, str]:
        try:
            return await self._client.start_workflow(
                WORKFLOW,
                start,
                id=self.id_of(start.run_id),
                task_queue=start.queue,
                result_type=str,
                task_timeout=DECIDE,
                # A run that was paused, or whose workflow was ended from outside, goes on anew.
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal=ANSWERED if tell else None,
                start_signal_args=[""] if tell else [],
            )
        except RPCError as error:
            raise _of_rpc(error) from error


def missing_of(error: StoreError) -> Missing:
    """What a run waits for that met this error; '' where waiting does not help."""
    if not error.transient:
        return ""
    return _MISSING.get(error.code, "")


def _unreachable(why: str, *, transient: bool = True) -> StoreError:
    return StoreError(
        f"Temporal cannot be reached: {why[:300].rstrip('.')}.",
        hint="The message is kept. Go on with it when Temporal is there again.",
        code=UNREACHABLE,
        transient=transient,
    )


def _of_rpc(error: RPCError) -> StoreError:
    if namespace := _namespace_of(error):
        return StoreError(
            f"Temporal has no namespace '{namespace[:100]}'.",
            hint=f"Make it: temporal operator namespace create --namespace '{namespace[:100]}'.",
            code=NO_NAMESPACE,
            transient=True,
        )
    return _unreachable(error.message, transient=error.status not in _FINAL)


def _is_of_nothing(error: RPCError) -> bool:
    """Whether the namespace is there, and what was asked for in it is not."""
    return error.status == RPCStatusCode.NOT_FOUND and not _namespace_of(error)


def _namespace_of(error: RPCError) -> str:
    """The namespace that Temporal does not know, '' for another error."""
    unknown = NamespaceNotFoundFailure()
    for detail in error.grpc_status.details:
        if detail.Unpack(unknown):
            return unknown.namespace or "?"
    return ""


def _as_harness_error(error: WorkflowFailureError) -> HarnessError:
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type == REFUSED:
        code, hint = (*cause.details, "", "")[:2]
        return HarnessError(cause.message, code=str(code) or None, hint=str(hint))
    return HarnessError(
        f"The workflow of this run was ended from outside: {str(cause)[:300]}",
        hint="What was written until then is kept. Resume the run to go on with it.",
        code="run_interrupted",
    )
