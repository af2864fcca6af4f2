"""Changes of two servers to the record of one chat: each keeps what the other did not touch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from web.harness.sessions.records import Record
from web.harness.values.messages import JsonObject

NAMES = ("grants", "tools_off", "skills_off")
"""Fields that are sets of names, in rising order."""

LISTS = ("attachments", "servers", "taking_back")
"""Fields whose entries come and go each for itself."""


def merged(base: Record | None, ours: Record, theirs: Record) -> Record:
    """`theirs`, the row as it is, with what changed from `base` to `ours`.

    Where both changed the same it is ours, except that a draft which is gone here gives way to one
    that was typed there, and that the higher place counts, which is that of the newest message.
    Without a base all of ours counts.
    """
    if base is None:
        return ours
    body = _fields(base.body, ours.body, theirs.body)
    place = theirs.place if ours.place == base.place else ours.place
    if base.place not in (ours.place, theirs.place):
        place = max(ours.place, theirs.place)
    return replace(
        theirs,
        place=place,
        body=body,
        deleted_at=theirs.deleted_at if ours.deleted_at == base.deleted_at else ours.deleted_at,
    )


def _fields(base: JsonObject, ours: JsonObject, theirs: JsonObject) -> JsonObject:
    # A field that only the row has is of a newer version of this program.
    return theirs | {
        name: _field(name, base.get(name), each, theirs[name]) if name in theirs else each
        for name, each in ours.items()
    }


def _field(name: str, base: Any, ours: Any, theirs: Any) -> Any:
    if name in NAMES:
        return sorted(merged_entries(base or (), ours or (), theirs or ()))
    if name in LISTS:
        return merged_entries(base or (), ours or (), theirs or ())
    if name == "draft" and not ours:
        # It went with a message, or was emptied: what was typed on another server since stays.
        return theirs if theirs != base else ours
    if all(isinstance(each, dict) for each in (base, ours, theirs)):
        return _fields(base, ours, theirs)
    return theirs if ours == base else ours


def merged_entries(base: Iterable[Any], ours: Iterable[Any], theirs: Iterable[Any]) -> list[Any]:
    """The entries of `theirs` with what came, went and changed from `base` to `ours`."""
    before, here, there = _by_key(base), _by_key(ours), _by_key(theirs)
    left = {key: each for key, each in there.items() if key in here or key not in before}
    new = {key: each for key, each in here.items() if before.get(key) != each}
    return list((left | new).values())


def _by_key(entries: Iterable[Any]) -> dict[str, Any]:
    return {_key(each): each for each in entries}


def _key(entry: Any) -> str:
    """What stays the same of an entry that changes: the name of a server."""
    if isinstance(entry, dict):
        return str(entry["name"]) if "name" in entry else json.dumps(entry, sort_keys=True)
    return str(entry)
