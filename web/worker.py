"""The parts of a worker: what performs runs of chats in a process without pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from web.app import OwnProviders, make_services
from web.chats.crew import ChatCrew
from web.chats.tasks import TaskOwner
from web.harness.resources import ResourcePool
from web.harness.runtime.temporal.backend import TemporalBackend
from web.harness.sessions.sql.store import SqlSessionStore
from web.settings import Settings, request_identity


@asynccontextmanager
async def working(settings: Settings, address: str) -> AsyncIterator[None]:
    """Performs runs for the servers of chats of a Temporal address, until the end of the block.

    `settings` name the same store, as `read_address(address).events`. Raises ConfigurationError,
    and StoreError where the store or Temporal cannot be reached, or has not the namespace.
    """
    own, tasks, resources = OwnProviders(settings), TaskOwner(), ResourcePool()
    for model in settings.models:
        own.get(model)
    kept, services = make_services(settings, request_identity(settings), own.get, tasks, resources)
    backend = TemporalBackend(address)
    stores = await backend.open()
    await kept.open()
    chats = services.chats
    try:
        async with tasks:
            chats.servers.start()
            chats.files.start()
            chats.skills.start()
            chats.memories.start()
            assert isinstance(stores.sessions, SqlSessionStore)  # noqa: S101 - Temporal has these
            crew = ChatCrew(
                chats,
                tasks,
                kept.records,
                stores.blobs,
                stores.sessions.peek,
            )
            try:
                async with backend.working(crew):
                    yield
            finally:
                await chats.servers.aclose()
                chats.files.stop()
    finally:
        await resources.aclose()
        await kept.aclose()
        await backend.aclose()
        await own.aclose()
