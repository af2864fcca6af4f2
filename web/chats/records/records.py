"""Chat records: what is kept of a chat beside its conversation, written at any time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from web.chats.parts.kinds import ChatState
from web.chats.records.attachments import PendingAttachment
from web.chats.setup import STANDARD, Setup
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Record
from web.harness.values.messages import JsonObject

UNTITLED = "New chat"
"""What a chat is called until its first message."""


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """Settings and bookkeeping of one chat. Times are seconds since the epoch.

    `order` sorts the side bar, highest first. `deleted_at` is set while a deletion can still be
    undone, and `files_go` says then that its files are deleted with it. `title` is '' until the
    first message gives one. `tools_off` are the names of tools of MCP servers that a person
    switched off, `skills_off` those of skills. `attachments` go with the draft. `setup` are limits
    of its own. `memory` says whether it uses what is remembered beyond a chat. `grants` are the
    tools that a person allowed for it, `servers` the entries of its own MCP servers without their
    secrets, as `mcpServers` has them. `taking_back` are the runs of messages that a person takes
    back, until what they said is in the draft. `state` is what the side bar shows of a chat that
    nobody has opened.
    """

    id: str
    model: str
    created_at: float
    order: float
    title: str = ""
    system_prompt: str = ""
    draft: str = ""
    deleted_at: float | None = None
    files_go: bool = False
    tools_off: tuple[str, ...] = ()
    skills_off: tuple[str, ...] = ()
    attachments: tuple[PendingAttachment, ...] = ()
    setup: Setup = STANDARD
    memory: bool = False
    grants: tuple[str, ...] = ()
    servers: tuple[JsonObject, ...] = ()
    taking_back: tuple[str, ...] = ()
    state: ChatState = "idle"
    stored: Record | None = field(default=None, compare=False, repr=False)
    """The row that this was made from, if any: what is different from it was changed here."""

    def switched_as(self, other: ChatRecord) -> ChatRecord:
        """The record with the tools, skills and memory of another switched on and off."""
        off, skills = other.tools_off, other.skills_off
        return replace(self, tools_off=off, skills_off=skills, memory=other.memory)


class ChatRecords(Protocol):
    """Records by identity and chat id. Each call is atomic; identities never meet."""

    async def put(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        """Writes a record, new or known, whole."""
        ...

    async def get(self, identity: HarnessIdentity, chat_id: str) -> ChatRecord | None: ...

    async def list(self, identity: HarnessIdentity) -> list[ChatRecord]:
        """All records of an identity, deleted ones included, highest order first."""
        ...

    async def delete(self, identity: HarnessIdentity, chat_id: str) -> None:
        """Forgets a record; an unknown one is fine."""
        ...


class InMemoryChatRecords:
    """The default `ChatRecords`: gone with the process."""

    def __init__(self) -> None:
        self._records: dict[tuple[HarnessIdentity, str], ChatRecord] = {}

    async def put(self, identity: HarnessIdentity, record: ChatRecord) -> None:
        self._records[identity, record.id] = record

    async def get(self, identity: HarnessIdentity, chat_id: str) -> ChatRecord | None:
        return self._records.get((identity, chat_id))

    async def list(self, identity: HarnessIdentity) -> list[ChatRecord]:
        mine = [record for (owner, _), record in self._records.items() if owner == identity]
        return sorted(mine, key=lambda record: record.order, reverse=True)

    async def delete(self, identity: HarnessIdentity, chat_id: str) -> None:
        self._records.pop((identity, chat_id), None)
