"""Live things that count how often they are opened and disposed of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from web.harness.resources import ResourceLease
from web.harness.tools.resource import Ownership, Resource, Scope


@dataclass(eq=False)
class LiveThing:
    name: str
    disposals: int = 0

    @property
    def is_open(self) -> bool:
        return self.disposals == 0


@dataclass
class Opener:
    """Opens things named alike. `disposed` has the names of all in the order of their disposal.

    With a `gate`, opening waits for it; `begun` is set when it does. `error` is what opening
    raises, `refusal` what disposing raises.
    """

    name: str = "thing"
    ownership: Ownership = "runtime"
    gate: asyncio.Event | None = None
    error: Exception | None = None
    refusal: Exception | None = None
    disposed: list[str] = field(default_factory=list)
    opened: list[LiveThing] = field(default_factory=list)
    calls: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> Resource[LiveThing]:
        self.calls += 1
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        thing = LiveThing(self.name)
        self.opened.append(thing)

        async def dispose() -> None:
            thing.disposals += 1
            self.disposed.append(self.name)
            if self.refusal is not None:
                raise self.refusal

        return Resource(thing, self.ownership, dispose)


async def asking(
    lease: ResourceLease, opener: Opener, scope: Scope = "session", id: str = "x"
) -> asyncio.Task[Resource[LiveThing]]:
    """A task that asks and is as far as it gets by itself."""
    task = asyncio.ensure_future(lease.resource(id, scope, opener))
    await turns()
    return task


async def turns() -> None:
    """Lets every task go on until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)
