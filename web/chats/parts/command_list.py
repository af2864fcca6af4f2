"""The commands of a message box, from all that has some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from web.chats.parts.channel import Channel
from web.chats.parts.offer_kinds import Command, Commands

SHOWN_COMMANDS = 500


class CommandList:
    """Keeps one part up to the commands of every kind: by its id and the slot that it lies in."""

    def __init__(self, channel: Channel, id: str = "command-list", slot: str = "commands") -> None:
        self._channel = channel
        self._id = id
        self._slot = slot
        self._of_kind: dict[str, tuple[Command, ...]] = {}
        self._more: dict[str, int] = {}

    def put(self, kind: str, commands: Sequence[Command], more: int = 0) -> None:
        """Replaces the commands of a kind; `more` are not among them.

        Two of one name are told apart by their sources.
        """
        self._of_kind[kind] = tuple(commands)
        self._more[kind] = more
        found = [each for _, some in sorted(self._of_kind.items()) for each in some]
        shared = Counter(label for label, _ in {(each.label, each.source) for each in found})
        shown = tuple(
            each
            if shared[each.label] == 1
            else replace(each, label=f"/{each.source}:{each.label[1:]}")
            for each in found[:SHOWN_COMMANDS]
        )
        if shown:
            part = Commands(shown, len(found) - len(shown) + sum(self._more.values()))
            self._channel.put(self._id, self._slot, part)
        else:
            self._channel.remove(self._id)
