"""What a program changed in a chat's folder, past the tools: made versions that say which call ran
it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from web.harness.builtin.ledger import Ledger
from web.harness.builtin.rooted import Stamp
from web.harness.builtin.versions import Origin
from web.harness.tools.words import describe
from web.harness.values.errors import HarnessError, LimitExceeded, NotFound, ToolError

KEPT_BEFORE_BYTES = 64 * 1024 * 1024
"""So much that lies in the folder as no version yet becomes one before a program runs."""

NAMED = 20
"""So many files of each kind are named in words."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The folder before a program ran. `more` says that it held more files than can be listed."""

    stamps: Mapping[str, Stamp]
    more: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """What is another after it: paths, and in `notes` what could not be kept, and why."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        return self.made + self.changed

    @property
    def words(self) -> str:
        """The same in words; '' for nothing."""
        kinds = (("Made", self.made), ("Changed", self.changed), ("Deleted", self.deleted))
        said = [f"{kind}: {_named(paths)}." for kind, paths in kinds if paths]
        return " ".join([*said, *self.notes])


NOTHING_CHANGED = Changed()


def note_folder(ledger: Ledger) -> Noted:
    """Looks at the folder, and keeps what somebody else changed before, so that it is not lost."""
    listing = ledger.rooted.walk(ledger.limits.max_files)
    left = KEPT_BEFORE_BYTES
    for entry in listing.files:
        with ledger.looking() as room:
            last = room.log.history(entry.path).last
            known = ledger.contents.known(room.log, entry.path, entry.stamp)
        if known is not None and last is not None and known.sha256 == last.sha256:
            continue
        if entry.size <= left:
            left -= entry.size
            with contextlib.suppress(LimitExceeded, NotFound, ToolError):
                ledger.adopt(entry.path)
    # Looked at again: what was adopted has the same stamp, what changed meanwhile another.
    listing = ledger.rooted.walk(ledger.limits.max_files)
    return Noted({entry.path: entry.stamp for entry in listing.files}, listing.more)


def keep_changes(ledger: Ledger, noted: Noted, origin: Origin) -> Changed:
    """Makes versions of what changed since, whose origin is the call that ran the program."""
    limits = ledger.limits
    listing = ledger.rooted.walk(limits.max_files)
    made: list[str] = []
    changed: list[str] = []
    notes: list[str] = []
    refused: list[str] = []
    room = limits.max_chat_bytes
    for entry in listing.files:
        # What is too large by itself takes no room from the others.
        room -= entry.size if entry.size <= limits.max_file_bytes else 0
        before = noted.stamps.get(entry.path)
        if before == entry.stamp or (before is None and noted.more):
            continue
        if room < 0:
            refused.append(entry.path)
            continue
        try:
            if ledger.adopt(entry.path, origin) is not None:
                (made if before is None else changed).append(entry.path)
        except HarnessError as error:
            notes.append(describe(error))
    deleted = tuple(_deleted(ledger, noted, origin))
    if listing.more:
        notes.insert(
            0,
            f"There are more files now than the {limits.max_files:,} that a chat may have; those "
            "beyond are not listed and have no versions.",
        )
    if refused:
        notes.append(
            f"All files together are larger than the {limits.max_chat_bytes:,} bytes that a chat "
            f"may have, so there are no versions of: {_named(refused)}."
        )
    return Changed(tuple(made), tuple(changed), deleted, _few(notes))


def _deleted(ledger: Ledger, noted: Noted, origin: Origin) -> Iterator[str]:
    for path in noted.stamps:
        with contextlib.suppress(NotFound, ToolError):
            if ledger.status(path) is None and ledger.adopt(path, origin) is not None:
                yield path


def _named(paths: Iterable[str]) -> str:
    every = list(paths)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more


def _few(notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - NAMED
    return (*notes[:NAMED], f"And {more:,} more.") if more > 0 else tuple(notes)
