"""Frames: what changed in some channels after a cursor, as the JSON that the page applies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from web.chats.parts.channel import Change, Channel, Clock
from web.harness.values.errors import HarnessError
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.slices import Slices

_CURSOR = re.compile(r"([0-9a-f]{1,32}):([0-9]{1,15})")

_GONE = {
    "deleted": (
        "This chat was deleted.",
        "What is on the screen stays until you leave the page, and what you typed is kept.",
    ),
    "restarted": (
        "The server was restarted, and this chat is gone: it was kept in memory only.",
        "What is on the screen stays until you leave the page, and what you typed is kept.",
    ),
    "unknown": (
        "This chat is not on this server any more.",
        "What is on the screen stays until you leave the page, and what you typed is kept.",
    ),
}

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader has everything up to `version` of the server epoch `epoch`."""

    epoch: str
    version: int

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Reads `EPOCH:VERSION`; raises HarnessError (`bad_cursor`) for anything else."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise HarnessError(
                "This is not a cursor of a page.", hint="Load the page again.", code="bad_cursor"
            )
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.epoch}:{self.version}"


class Frames:
    """One reader's view of some channels. `channels` maps each name asked for to its channel,
    None where there is none (any more). Chats that are only kept `in_memory` end with the epoch.

    A page that was made before the server started is told the `token` of its forms now."""

    def __init__(
        self,
        clock: Clock,
        fragments: Fragments,
        channels: Mapping[str, Channel | None],
        after: Cursor,
        *,
        in_memory: bool = True,
        token: str = "",
    ) -> None:
        self._fragments = fragments
        self._clock = clock
        self._channels = channels
        self._in_memory = in_memory
        self._known_epoch = after.epoch == clock.epoch
        # Versions of another epoch mean nothing: such a reader gets everything.
        self._after = min(after.version, clock.version) if self._known_epoch else -1
        self._told: set[str] = set()
        self._token = "" if self._known_epoch else token

    @property
    def cursor(self) -> Cursor:
        """What the reader has once it got the last frame."""
        return Cursor(self._clock.epoch, max(self._after, 0))

    async def next(self) -> str | None:
        """The next frame as JSON, None if nothing changed."""
        after = self._after
        changed: list[tuple[Channel, bool, list[Change]]] = []
        gone: list[dict[str, str]] = []
        version = self._clock.version
        for name, channel in self._channels.items():
            if channel is None or channel.gone is not None:
                gone += self._tell(name, channel)
                continue
            self._told.discard(name)
            changes = channel.changes(after)
            if changes.full or changes.changes:
                changed.append((channel, changes.full, changes.changes))
            version = max(version, changes.version)
        self._after = version
        if not changed and not gone:
            return None
        parts = [
            f'{{"name":{_json(channel.name)},"full":{_json(full)},'
            f'"parts":[{",".join(await self._parts(channel, found))}]}}'
            for channel, full, found in changed
        ]
        token = f',"token":{_json(self._token)}' if self._token else ""
        self._token = ""
        return (
            f'{{"epoch":{_json(self._clock.epoch)},"version":{version},'
            f'"channels":[{",".join(parts)}],"gone":{_json(gone)}{token}}}'
        )

    async def _parts(self, channel: Channel, changes: list[Change]) -> list[str]:
        """Each change as JSON. There may be thousands after a pause, or in a long answer."""
        await self._fragments.warm(
            channel.name, [change.part for change in changes if change.part is not None]
        )
        slices = Slices()
        parts: list[str] = []
        for change in changes:
            parts.append(_json(self._part(channel, change)))
            await slices.pause()
        return parts

    def _part(self, channel: Channel, change: Change) -> dict[str, Any]:
        part = change.part
        if part is None:
            return {"id": change.id, "version": change.version, "gone": True}
        return {
            "id": part.id,
            "slot": part.slot,
            "after": change.after,
            # It may have changed again since, and moved: the next frame says that, and is newer.
            "version": change.version,
            "html": self._fragments.element(channel.name, part),
        }

    def _tell(self, name: str, channel: Channel | None) -> list[dict[str, str]]:
        """Says once that a channel is gone, and why."""
        if name in self._told:
            return []
        self._told.add(name)
        code = channel.gone if channel is not None else None
        if code not in _GONE:
            code = "restarted" if self._in_memory and not self._known_epoch else "unknown"
        message, hint = _GONE[code]
        return [{"name": name, "code": code, "message": message, "hint": hint}]
