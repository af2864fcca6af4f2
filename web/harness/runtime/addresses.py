"""Addresses of backends, read without opening or importing any."""

from __future__ import annotations

from web.harness.sessions.opening import repeated, store_kind
from web.harness.values.errors import ConfigurationError

FORMS = (
    "sqlite:///PATH (sqlite:////PATH from the root), postgresql://USER@HOST/DATABASE, "
    "temporal://HOST:PORT/NAMESPACE?events=STORE, none"
)


def is_temporal(address: str) -> bool:
    return address.startswith("temporal:")


def store_of_backend(address: str) -> str:
    """The address of the database that a backend keeps all in.

    Raises ConfigurationError for an address that is none; no password in it is repeated.
    """
    if is_temporal(address):
        from web.harness.runtime.temporal.address import read_address

        return read_address(address).events
    if store_kind(address) in ("sqlite", "postgresql"):
        return address
    shown = repeated(address)
    raise ConfigurationError(
        f"{shown[:1].upper()}{shown[1:]} is no backend.", hint=f"There are {FORMS}."
    )
