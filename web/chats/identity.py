"""Who is asking. There is one person, at this machine, until servers know more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity


class IdentitySource(Protocol):
    """Tells whose request it is."""

    def identify(self, headers: Mapping[str, str]) -> HarnessIdentity | None:
        """The identity behind a request's headers (lower-case names); None for a stranger."""
        ...


class LocalIdentity:
    """Everybody who reaches the server is the person at this machine: it listens on loopback."""

    def identify(self, headers: Mapping[str, str]) -> HarnessIdentity:
        return LOCAL_IDENTITY
