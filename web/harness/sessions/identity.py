"""Who a session belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from web.harness.values.errors import HarnessError

MAX_ID_CHARS = 200
"""Of the id of a tenant, a user or a session."""


@dataclass(frozen=True, slots=True)
class HarnessIdentity:
    """A user of a tenant. Everything a session owns is scoped by it and the session id."""

    tenant_id: str
    user_id: str


LOCAL_IDENTITY = HarnessIdentity("local", "local")
"""The one person at this machine."""


def check_scope(identity: HarnessIdentity, session_id: str) -> None:
    """Raises HarnessError (`invalid_id`) for ids that not every store can keep as they are."""
    ids = {
        "tenant": identity.tenant_id,
        "user": identity.user_id,
        "session": session_id,
    }
    for what, value in ids.items():
        if not can_be_kept(value):
            raise HarnessError(
                f"The id of a {what} has 1 to {MAX_ID_CHARS} characters, none of them NUL.",
                code="invalid_id",
            )


def can_be_kept(value: str) -> bool:
    """Whether every store can keep a text as an id."""
    if not 0 < len(value) <= MAX_ID_CHARS or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
