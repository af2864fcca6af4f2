"""The part of the JSON API that has memories: the facts and notes of a person, and a chat's switch.

Memories belong to a person, so that a change counts for all chats of that person; each chat has its
own switch.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from web.chats.actions import memory_actions
from web.chats.chat import Chat
from web.chats.memories.memory_shelf import MemoryShelf
from web.chats.parts.memory_kinds import MemoryOf, ShownMemory
from web.ui.api.operations import Call, Operation, Query
from web.ui.api.shapes import Asked, Nothing, Told


class MemorySummary(Told):
    """A fact, or a note with a title; one with a `fault` cannot be read."""

    key: str
    of: MemoryOf
    title: str
    text: str = Field(description="A fact's own; of a note how it begins.")
    tags: tuple[str, ...] = Field(description="Of a note; of a fact its category alone.")
    updated_at: float = Field(description="Seconds since the epoch, 0 where it is not known.")
    fault: str


class MemoryWhole(MemorySummary):
    text: str = Field(description="All of it.")
    seen: str = Field(description="Tells this state of it from another, for `seen`.")


class MemoriesTold(Told):
    """What is remembered: the newest, or those that were searched for."""

    on: bool = Field(description="Whether this chat uses it.")
    facts: int = Field(description="How many there are.")
    notes: int
    faults: tuple[str, ...] = Field(description="What could not be read, in lines.")
    memories: tuple[MemorySummary, ...]


class MemorySwitch(Asked):
    on: bool = Field(description="Whether this chat uses what is remembered.")


class NewMemory(Asked):
    text: str
    title: str = Field("", description="With one it is a note in markdown, else a fact.")
    tags: list[str] = Field([], description="Of a note; the first is a fact's category.")


class MemoryChange(Asked):
    """What is left out stays. With `seen` nothing is changed that was changed meanwhile."""

    text: str | None = None
    title: str | None = Field(None, description="Of a note.")
    tags: list[str] | None = None
    seen: str = ""


async def list_memories(call: Call[Nothing]) -> MemoriesTold:
    chat, shelf = await _looked(call)
    words = call.request.query_params.get("q", "").strip()
    return _told(chat, shelf, await shelf.search(words) if words else shelf.listing.memories)


async def switch_memory(call: Call[MemorySwitch]) -> MemoriesTold:
    chat, shelf = await _looked(call)
    await call.services.chats.switch_memory(chat, on=call.body.on)
    return _told(chat, shelf, shelf.listing.memories)


async def add_memory(call: Call[NewMemory]) -> MemoryWhole:
    chat, shelf = await _looked(call)
    asked = call.body
    made = await memory_actions.add_memory(
        call.services.chats, chat, asked.text, title=asked.title, tags=asked.tags
    )
    return await _whole(shelf, made.ref)


async def get_memory(call: Call[Nothing]) -> MemoryWhole:
    _, shelf = await _looked(call)
    return await _whole(shelf, call.path["key"])


async def change_memory(call: Call[MemoryChange]) -> MemoryWhole:
    chat, shelf = await _looked(call)
    asked, key = call.body, call.path["key"]
    await memory_actions.edit_memory(
        call.services.chats,
        chat,
        key,
        text=asked.text,
        title=asked.title,
        tags=asked.tags,
        seen=asked.seen,
    )
    return await _whole(shelf, key)


async def forget_memory(call: Call[Nothing]) -> None:
    chat, _ = await _looked(call)
    await memory_actions.forget_memory(call.services.chats, chat, call.path["key"])


async def restore_memory(call: Call[Nothing]) -> None:
    chat, _ = await _looked(call)
    await memory_actions.restore_memory(call.services.chats, chat, call.path["key"])


async def _looked(call: Call[Any]) -> tuple[Chat, MemoryShelf]:
    """The chat, and what is remembered of its person as it is on disk now."""
    chats = call.services.chats
    chat = chats.get(call.identity, call.path["chat_id"])
    return chat, await chats.memories.look(chat.identity)


def _told(chat: Chat, shelf: MemoryShelf, found: tuple[ShownMemory, ...]) -> MemoriesTold:
    listing = shelf.listing
    return MemoriesTold(
        on=chat.record.memory,
        facts=listing.facts,
        notes=listing.notes,
        faults=listing.faults,
        memories=tuple(MemorySummary(**_summary(each)) for each in found),
    )


async def _whole(shelf: MemoryShelf, key: str) -> MemoryWhole:
    memory = await shelf.read(key)
    return MemoryWhole(**{**_summary(memory.shown), "text": memory.text}, seen=memory.seen)


def _summary(each: ShownMemory) -> dict[str, Any]:
    return {
        "key": each.ref,
        "of": each.of,
        "title": each.title,
        "text": each.text,
        "tags": each.tags,
        "updated_at": each.updated,
        "fault": each.fault,
    }


_PATH = "/api/chats/{chat_id}/memories"
_READING = ("not_found", "memory_disk", "memory_refused")
_WRITING = (*_READING, "limit_exceeded", "memory_busy", "too_long")

MEMORY_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        _PATH,
        "What is remembered beyond a chat: facts and notes, the newest first or as searched",
        list_memories,
        Nothing,
        MemoriesTold,
        refusals=_READING,
        query=(Query("q", "Words to search for; the best of facts and of notes first.", ".*"),),
    ),
    Operation(
        "PATCH",
        _PATH,
        "Let this chat use what is remembered, or not",
        switch_memory,
        MemorySwitch,
        MemoriesTold,
        refusals=_READING,
    ),
    Operation(
        "POST",
        _PATH,
        "Remember something: a fact, or with a title a note",
        add_memory,
        NewMemory,
        MemoryWhole,
        201,
        _WRITING,
    ),
    Operation(
        "GET",
        _PATH + "/{key}",
        "Read a fact or a note",
        get_memory,
        Nothing,
        MemoryWhole,
        refusals=_READING,
    ),
    Operation(
        "PATCH",
        _PATH + "/{key}",
        "Change a fact or a note",
        change_memory,
        MemoryChange,
        MemoryWhole,
        refusals=(*_WRITING, "memory_changed"),
    ),
    Operation(
        "DELETE",
        _PATH + "/{key}",
        "Forget a fact or a note; it is removed from the disk",
        forget_memory,
        Nothing,
        status=204,
        refusals=_WRITING,
    ),
    Operation(
        "POST",
        _PATH + "/{key}/restore",
        "Undo that, for some seconds",
        restore_memory,
        Nothing,
        status=204,
        refusals=_WRITING,
    ),
)
