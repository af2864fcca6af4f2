"""Who a session belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HarnessIdentity:
    """A user of a tenant. Everything a session owns is scoped by it and the session id."""

    tenant_id: str
    user_id: str


LOCAL_IDENTITY = HarnessIdentity("local", "local")
"""The one person at this machine."""
