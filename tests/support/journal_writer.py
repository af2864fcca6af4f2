"""A server that performs runs: `python -m tests.support.journal_writer ADDRESS SECONDS`.

It reads a line for each thing to do and answers with one:

| line | answer |
|---|---|
| begin | `begun FENCE STEPS` of run r, submitted where it was not |
| write | `settled` once an event and a step of it are committed, or the code of an error |
| run | `settled STEPS` again and again, while ten other runs write beside it |

An event says how many there were before it, and so does the state of a step.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from tests.support.session_writer import do_lines, say
from tests.support.steps import STATE, submission
from web.harness.sessions.journal import Executions, RunJournal, Step
from web.harness.sessions.opening import Stores, open_stores
from web.harness.values.events import TextDelta

OTHERS = 10


class Writer:
    def __init__(self, stores: Stores) -> None:
        self._events = stores.events
        assert stores.executions is not None
        self._runs: Executions = stores.executions
        self._journal: RunJournal | None = None
        self._steps = 0
        self._said = 0

    async def do(self, line: str) -> None:
        match line:
            case "begin":
                fence = await self.begin()
                say("begun", fence, self._steps)
            case "write":
                self.write()
                await self.settled()
                say("settled")
            case "run":
                async with asyncio.TaskGroup() as group:
                    for at in range(OTHERS):
                        group.create_task(self.write_beside(f"r{at}"))
                    while True:
                        for _ in range(3):
                            self.write()
                        await self.settled()
                        say("settled", self._steps)

    async def begin(self) -> int:
        await self._runs.submit(submission())
        execution, self._journal = await self._runs.begin("r")
        self._steps = execution.steps
        self._said = 2 * execution.steps
        return execution.fence

    def write(self) -> None:
        assert self._journal is not None
        self._events.append("r", [TextDelta(f"{self._said + at} ", "m") for at in range(2)])
        self._said += 2
        self._steps += 1
        self._journal.write(Step("model_call"), replace(STATE, iterations=self._steps))

    async def settled(self) -> None:
        assert self._journal is not None
        await self._journal.settled()

    async def write_beside(self, run_id: str) -> None:
        await self._runs.submit(submission(run_id, run_id))
        _, journal = await self._runs.begin(run_id)
        while True:
            self._events.append(run_id, [TextDelta("x", "m")])
            journal.write(Step("model_call"), STATE)
            await journal.settled()


async def main(address: str) -> None:
    stores = await open_stores(address, now=lambda: 1.0)
    writer = Writer(stores)
    await do_lines(writer.do)
    await stores.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
