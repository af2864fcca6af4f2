"""All tool calls that a chat's page shows, those of sub-agents too."""

from __future__ import annotations

from collections.abc import Iterator

from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Call


def all_calls(channel: Channel) -> Iterator[Call]:
    """Every call that is shown, in the order of the page."""
    return _calls_in(channel, "log")


def _calls_in(channel: Channel, slot: str) -> Iterator[Call]:
    for part in channel.slot(slot):
        if isinstance(part.data, Call):
            yield part.data
            if part.data.nested:
                yield from _calls_in(channel, part.id)
