"""The resources that a person watches: they outlive the sessions of a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MAX_WATCHED = 100


class Watches:
    """`uris` are watched; `updated` tells when a server last had news of one, until it is read.

    `changed` is called after each change of either; `clock` gives Unix seconds.
    """

    def __init__(self, clock: Callable[[], float], changed: Callable[[], None]) -> None:
        self.uris: frozenset[str] = frozenset()
        self.updated: Mapping[str, float] = {}
        self._clock = clock
        self._changed = changed

    def add(self, uri: str) -> None:
        self.uris |= {uri}
        self._changed()

    def discard(self, uri: str) -> None:
        self.uris -= {uri}
        self.updated = {each: at for each, at in self.updated.items() if each != uri}
        self._changed()

    def tell(self, uri: str) -> None:
        """Takes news of a resource, or of one below another that is watched."""
        self._tell([each for each in self.uris if f"{uri}/".startswith(f"{each.rstrip('/')}/")])

    def tell_all(self) -> None:
        """Says of each that it may be another: nothing was heard for a while."""
        self._tell(list(self.uris))

    def now(self) -> float:
        """The time by which news is dated."""
        return self._clock()

    def was_read(self, uri: str, asked_at: float) -> None:
        """Its content as of `asked_at` is known, so that what was told before is no news."""
        if uri in self.updated and self.updated[uri] <= asked_at:
            self.updated = {each: at for each, at in self.updated.items() if each != uri}
            self._changed()

    def _tell(self, uris: list[str]) -> None:
        if uris:
            self.updated = {**self.updated, **dict.fromkeys(uris, self._clock())}
            self._changed()
