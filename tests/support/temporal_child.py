"""A process of a run over Temporal: `python -m tests.support.temporal_child ROLE PLACE RAN REPLAY`.

PLACE is the address. A `worker` performs what comes; where it would do something it says
`["at", WHAT]` on a line and waits for one. A `web` begins the run, or with `resume` goes on with
it: it says `["asked", NAME]` and says yes after a line, and at last `["result", STATUS, TEXT]`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from tests.support.durable_run import durable_agent
from tests.support.temporal_runs import QUICK, crew_of
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.values.events import ApprovalRequired


def say(*words: Any) -> None:
    print(json.dumps(words), flush=True)


def at(what: str) -> None:
    say("at", what)
    sys.stdin.readline()


async def worker(address: str, ran: Path, replay: Any) -> None:
    backend = TemporalBackend(address)
    async with backend.working(crew_of(backend, lambda: durable_agent(ran, replay, at)), grace=0):
        say("ready")
        await asyncio.Event().wait()


async def web(address: str, ran: Path, replay: Any, *, resume: bool) -> None:
    backend = TemporalBackend(address, workers="elsewhere", times=QUICK)
    async with AgentRuntime(durable_agent(ran, replay), backend=backend) as runtime:
        handle = await (runtime.resume("s", wait=30) if resume else runtime.submit("Do it."))
        say("begun", handle.run_id)
        async with aclosing(_questions(handle)) as questions:
            async for question in questions:
                say("asked", question.name)
                await asyncio.to_thread(sys.stdin.readline)
                await runtime.approve(question)
        result = await handle.result()
        say("result", result.status, result.text)
    await backend.aclose()


async def _questions(handle: RunHandle) -> AsyncGenerator[ApprovalRequired, None]:
    async with aclosing(handle.stream()) as events:
        async for event in events:
            if isinstance(event.body, ApprovalRequired):
                yield event.body


def main(role: str, address: str, ran: str, replay: str) -> None:
    if role == "worker":
        asyncio.run(worker(address, Path(ran), replay))
    else:
        asyncio.run(web(address, Path(ran), replay, resume=role == "resume"))


if __name__ == "__main__":
    main(*sys.argv[1:])
