"""A server that holds one session: `python -m tests.support.session_writer ADDRESS SECONDS`.

It reads a line for each thing to do and answers with one:

| line | answer |
|---|---|
| acquire | `held REVISION MESSAGES`, or the code of an error |
| commit TEXT | `committed REVISION`, or the code of an error |
| run | `committed REVISION` for each of commits without end |
| events | `shown NUMBER` for each of events without end, once they are committed |
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence

from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.opening import open_database
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.sessions.sql.event_log import SqlEventLog
from web.harness.sessions.sql.lease import SqlLease
from web.harness.sessions.sql.postgres import PostgresDatabase
from web.harness.sessions.sql.store import SqlSessionStore
from web.harness.values.errors import HarnessError
from web.harness.values.events import Event, TextDelta
from web.harness.values.messages import Message, TextBlock


def say(*words: object) -> None:
    print(*words, flush=True)


async def do_lines(do: Callable[[str], Awaitable[None]]) -> None:
    """Does what each line says as it comes, and answers with the code of an error there is."""
    say("ready")
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        try:
            await do(line)
        except HarnessError as error:
            say(error.code)


class Writer:
    def __init__(self, store: SqlSessionStore, log: SqlEventLog) -> None:
        self._store = store
        self._log = log
        self._lease: SqlLease | None = None
        self._snapshot = SessionSnapshot()

    async def do(self, line: str) -> None:
        word, _, text = line.partition(" ")
        match word:
            case "acquire":
                self._lease = await self._store.acquire(LOCAL_IDENTITY, "s", wait=10)
                self._snapshot = await self._lease.read()
                say("held", self._snapshot.revision, len(self._snapshot.history))
            case "commit":
                say("committed", await self.commit(text))
            case "run":
                while True:
                    say("committed", await self.commit("again"))
            case "events":
                while True:
                    self._log.append("r", [TextDelta("x", "m")] * 5)
                    await self._log.flush("r")

    async def commit(self, text: str) -> int:
        assert self._lease is not None
        message = Message(uuid.uuid4().hex, "user", (TextBlock(text),))
        snapshot = SessionSnapshot(
            (*self._snapshot.history, message), state={"count": len(self._snapshot.history) + 1}
        )
        self._snapshot = await self._lease.commit(snapshot)
        return self._snapshot.revision


async def main(address: str, seconds: str) -> None:
    database = await open_database(address)
    if isinstance(database, PostgresDatabase):
        # From then on others see it die.
        await asyncio.wait_for(database.listening.wait(), 10)

    def shown(_: str, events: Sequence[Event]) -> None:
        say("shown", events[-1].number)

    log = SqlEventLog(database, lambda: 1.0, shown, interval=0)
    writer = Writer(SqlSessionStore(database, lease_seconds=float(seconds)), log)
    await do_lines(writer.do)
    await log.aclose()
    await database.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
