"""Who made a version of a file, in words."""

from __future__ import annotations

from collections.abc import Iterable

from web.chats.parts.channel import Channel
from web.chats.parts.file_kinds import GoneFile, Made, ShownFile, ShownVersion
from web.chats.parts.kinds import Call
from web.harness.builtin.versions import Deed, FileInfo, Origin, Version

SHOWN_VERSIONS = 5
"""Of a file in the list; its own page shows all that are kept."""

OUTSIDE = Made("changed outside")

_TOOLS: dict[Deed, str] = {
    "written": "write_file",
    "edited": "edit_file",
    "deleted": "delete_file",
    "found": "a program that a tool ran",
}
_DECISIONS = {
    "allow": "allowed by you once",
    "allow_chat": "allowed by you for this chat",
    "": "which runs by itself",
}


def made(channel: Channel, version: Version | None) -> Made:
    """Who made it; nobody knows who changed a file that is in no version."""
    if version is None:
        return OUTSIDE
    match version.origin.kind:
        case "call":
            return _by_call(channel, version)
        case "person":
            return Made("deleted by you" if version.gone else "put in by you")
        case "restore":
            return Made(f"restored by you from version {version.restored}")
        case "outside":
            return Made("deleted outside") if version.gone else OUTSIDE


def shown_versions(channel: Channel, versions: Iterable[Version]) -> tuple[ShownVersion, ...]:
    """All of them, newest first; they are given oldest first, the last being the file as it is."""
    every = list(versions)
    return tuple(
        ShownVersion(
            number=version.number,
            sha256=version.sha256,
            size=version.size,
            at=version.at,
            made=made(channel, version),
            gone=version.gone,
            current=version is every[-1] and not version.gone,
        )
        for version in reversed(every)
    )


def shown_file(channel: Channel, info: FileInfo, versions: Iterable[Version]) -> ShownFile:
    """A file with its newest versions."""
    return ShownFile(
        path=info.path,
        size=info.size,
        changed_at=info.changed_at,
        media_type=info.media_type,
        sha256=info.sha256,
        made=made(channel, info.last),
        kept=info.versions,
        versions=shown_versions(channel, versions)[:SHOWN_VERSIONS],
    )


def gone_file(channel: Channel, path: str, versions: Iterable[Version]) -> GoneFile | None:
    """A file that was deleted; None where no version is kept that could be brought back."""
    every = list(versions)
    back = next((version for version in reversed(every) if not version.gone), None)
    if back is None:
        return None
    return GoneFile(path, every[-1].at, made(channel, every[-1]), back.number)


def _by_call(channel: Channel, version: Version) -> Made:
    origin = version.origin
    card = f"c-{origin.call_id}"
    part = channel.get(card)
    call = part.data if part is not None else None
    name = _TOOLS.get(version.deed, "a tool")
    if not isinstance(call, Call) or call.run_id != origin.run_id:
        card = ""
    else:
        name = call.name
    words = f"by {name}, {_DECISIONS.get(origin.decision, origin.decision)}"
    return Made(words, _detail(origin), card)


def _detail(origin: Origin) -> str:
    named = [f"call {origin.call_id}"]
    if origin.approval:
        named.append(f"approval {origin.approval}")
    return ", ".join([*named, f"run {origin.run_id}"])
