"""How much one chat may keep, and what goes when it is more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from web.harness.builtin.paths import folded
from web.harness.builtin.rooted import Listing
from web.harness.builtin.versions import History
from web.harness.tools.words import shown
from web.harness.values.errors import LimitExceeded, ToolError


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What the files of one chat may be. Sizes are in bytes.

    `kept_versions` bounds the versions of one file, `max_versions` those of all files together,
    `kept_bytes` the content of those that are not the files as they are now. Beyond a bound the
    oldest versions are dropped; the last one of a file that is there never is. `busy_seconds` is
    how long another program may hold the folder's lock before that is an error.
    """

    max_file_bytes: int = 100_000_000
    max_chat_bytes: int = 1_000_000_000
    max_files: int = 1000
    kept_versions: int = 50
    max_versions: int = 20_000
    kept_bytes: int = 1_000_000_000
    busy_seconds: float = 3.0

    def check_room(self, listing: Listing, path: str, size: int, *, new: bool) -> None:
        """Whether a file may have that size, besides those that are there.

        Raises LimitExceeded, or ToolError for a new name that is too much like another one.
        """
        if size > self.max_file_bytes:
            raise LimitExceeded(
                f"{shown(path)} would have {size:,} bytes; the limit of one file is "
                f"{self.max_file_bytes:,}."
            )
        if new:
            _refuse_twin(path, (entry.path for entry in listing.files))
            if len(listing.files) >= self.max_files:
                raise LimitExceeded(
                    f"The folder holds {self.max_files:,} files, which is the limit.",
                    hint="Write to a file that exists, or delete one.",
                )
        total = size + sum(entry.size for entry in listing.files if entry.path != path)
        if total > self.max_chat_bytes:
            raise LimitExceeded(
                f"All files of the chat together would have {total:,} bytes; the limit is "
                f"{self.max_chat_bytes:,}.",
                hint="Delete a file that is not needed.",
            )

    def beyond(self, histories: dict[str, History], path: str) -> dict[str, int]:
        """The versions that go now that `path` has a new one: for each path, up to which number."""
        dropped: dict[str, int] = {}
        versions = histories[path].versions
        if len(versions) > self.kept_versions:
            dropped[path] = versions[-self.kept_versions - 1].number
        count = sum(len(history.versions) for history in histories.values())
        held = sum(history.held_bytes for history in histories.values())
        if count <= self.max_versions and held <= self.kept_bytes:
            return dropped
        old = [
            (version.at, each, version.number, version.size)
            for each, history in histories.items()
            for version in history.versions
            if version is not history.last or version.gone
        ]
        for _, each, number, size in sorted(old):
            if count <= self.max_versions and held <= self.kept_bytes:
                break
            dropped[each] = max(number, dropped.get(each, 0))
            count -= 1
            held -= size
        return dropped


def _refuse_twin(path: str, others: Iterable[str]) -> None:
    """Refuses a new name that some disk would take for one that is there."""
    wanted = _ways(path)
    for other in others:
        for plain, written in _ways(other).items():
            if wanted.get(plain, written) != written:
                raise ToolError(
                    f"{shown(path)} differs from {shown(written)}, which exists, only in case or "
                    "in how it is spelled. Use that name, or another one."
                )


def _ways(path: str) -> dict[str, str]:
    """A path and the folders that lead to it, each by the one spelling of all alike."""
    names = path.split("/")
    ways = ("/".join(names[: depth + 1]) for depth in range(len(names)))
    return {folded(way): way for way in ways}
