"""Addresses of Temporal: `temporal://HOST:PORT/NAMESPACE?events=STORE&queue=NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import parse_qs, unquote, urlsplit

from web.harness.sessions.opening import store_kind
from web.harness.values.errors import ConfigurationError

PORT = 7233
QUEUE = "harness-web"

FORM = (
    "temporal://HOST:PORT/NAMESPACE?events=STORE, where STORE is sqlite:///PATH or "
    "postgresql://USER@HOST/DATABASE, with %26 for a & in it"
)


@dataclass(frozen=True, slots=True)
class TemporalAddress:
    """Where runs are workflows. `events` is the store that has all they write, `queue` the task
    queue where workers wait for them; with `tls` the connection is encrypted."""

    target: str
    namespace: str
    events: str
    queue: str = QUEUE
    tls: bool = False


def read_address(text: str) -> TemporalAddress:
    """Reads an address. Raises ConfigurationError, which repeats none of it: it may hold a
    password."""
    try:
        parts = urlsplit(text)
        given = parse_qs(parts.query, strict_parsing=True)
        host, port = parts.hostname or "", parts.port or PORT
    except ValueError:
        raise _refused("This is no address of Temporal.") from None
    namespace = unquote(parts.path.strip("/")) or "default"
    if parts.scheme != "temporal" or not host or "/" in namespace or parts.username is not None:
        raise _refused("This is no address of Temporal.")
    if unknown := sorted(set(given) - {"events", "queue", "tls"}):
        raise _refused(f"An address of Temporal has no {unknown[0][:40]!r}.")
    if any(len(values) > 1 for values in given.values()):
        raise _refused("A part of this address of Temporal is there twice.")
    events = given.get("events", [""])[0]
    if store_kind(events) not in ("sqlite", "postgresql"):
        raise _refused("An address of Temporal says where events are kept, in a durable store.")
    tls = given.get("tls", ["no"])[0]
    if tls not in ("yes", "no"):
        raise _refused("In an address of Temporal, tls is yes or no.")
    shown = f"[{host}]" if ":" in host else host
    queue = given.get("queue", [QUEUE])[0]
    return TemporalAddress(f"{shown}:{port}", namespace, events, queue, tls == "yes")


def _refused(message: str) -> ConfigurationError:
    return ConfigurationError(message, hint=f"It is {FORM}.")


def need_temporal() -> None:
    """Raises ConfigurationError where the package for Temporal is not installed."""
    if find_spec("temporalio") is None:
        raise ConfigurationError(
            "The package for Temporal is not installed.",
            hint="pip install 'harness-web[temporal]', and start again.",
        )
