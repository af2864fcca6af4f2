"""All chats of a person in order, those that are in memory and those that are only stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from web.chats.chat import Chat
from web.chats.records.records import ChatRecord
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.records import Place

PAGE = 500
"""Records that are read before others have the event loop."""

Listed = Chat | ChatRecord
"""A chat; of one that is not in memory, its record."""


class Pages(Protocol):
    """What of the stored records this needs; see `StoredChatRecords`."""

    async def page(
        self, identity: HarnessIdentity, after: Place | None, limit: int
    ) -> tuple[list[ChatRecord], Place | None]: ...


async def listed(
    stored: Pages | None,
    identity: HarnessIdentity,
    loaded: Mapping[str, Chat],
    after: Place | None,
    limit: int | None,
) -> list[Listed]:
    """The living chats below a place, highest first, at most `limit`. `loaded` are all that are in
    memory, by id; what they say of themselves is newer than what is stored. Raises StoreError."""
    found: list[Listed] = [
        chat for chat in loaded.values() if not chat.is_deleted and _is_below(chat, after)
    ]
    unloaded, place, more = 0, after, stored is not None
    while stored is not None and more and (limit is None or unloaded < limit):
        records, following = await stored.page(identity, place, PAGE if limit is None else limit)
        for record in records:
            if record.id not in loaded and record.deleted_at is None:
                unloaded += 1
                found.append(record)
        place, more = following, following is not None
    found.sort(key=_place, reverse=True)
    return found if limit is None else found[:limit]


def place_of(each: Listed) -> Place:
    """Where a chat stands in the list: the next page begins after it."""
    return Place(*_place(each))


def _is_below(each: Listed, after: Place | None) -> bool:
    return after is None or _place(each) < (after.place, after.session_id)


def _place(each: Listed) -> tuple[float, str]:
    return (each.order if isinstance(each, ChatRecord) else each.record.order), each.id
