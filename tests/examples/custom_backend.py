"""A backend of one's own: here one that lets so many runs be performed at a time, and no more."""

from __future__ import annotations

# begin
import asyncio

from web.harness import Backend, GivenAnswer, Performed, Stores, Turn


class Bounded:
    """Another backend, of whose runs at most so many go on at the same time."""

    def __init__(self, inner: Backend, most: int) -> None:
        self._inner = inner
        self._turns = asyncio.Semaphore(most)

    async def open(self) -> Stores:
        return await self._inner.open()

    async def perform(self, turn: Turn) -> Performed:
        async with self._turns:
            return await self._inner.perform(turn)

    async def answered(self, run_id: str, answer: GivenAnswer) -> None:
        await self._inner.answered(run_id, answer)

    async def aclose(self) -> None:
        await self._inner.aclose()


# end


async def main() -> None:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from web.harness import Agent, AgentRuntime, SQLiteBackend

    with TemporaryDirectory() as folder:
        backend = Bounded(SQLiteBackend(str(Path(folder, "runs.db"))), most=1)
        runtimes = [AgentRuntime(Agent(session_id=each), backend=backend) for each in ("1", "2")]
        results = await asyncio.gather(*(runtime.run("/help") for runtime in runtimes))
        print([result.status for result in results])
        for runtime in runtimes:
            await runtime.aclose()
        await backend.aclose()


if __name__ == "__main__":
    asyncio.run(main())
