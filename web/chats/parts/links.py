"""Addresses that a stranger wrote, as far as a person may follow them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_ADDRESS_CHARS = 4_000

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ShownAddress:
    """An address to be looked at before it is opened: the whole of it, its host apart.

    `opens` is False for one that is not to be opened: then `before` holds all of it. `foreign`: its
    host has letters that may look like others.
    """

    before: str
    host: str = ""
    after: str = ""
    opens: bool = False
    foreign: bool = False

    @property
    def whole(self) -> str:
        return self.before + self.host + self.after


def shown_address(address: str) -> ShownAddress:
    """An address that a server asks a person to visit: https, or http on this machine."""
    host = web_host(address) if len(address) <= MAX_ADDRESS_CHARS else ""
    parts = urlsplit(address) if host else None
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if parts is None or (parts.scheme == "http" and name not in _LOOPBACK):
        return ShownAddress(address[:MAX_ADDRESS_CHARS])
    after = address.partition("://")[2][len(parts.netloc) :]
    return ShownAddress(f"{parts.scheme}://", host, after, True, "xn--" in host)


def web_host(address: str) -> str:
    """The host of a plain http(s) address, as the browser will ask for it; '' for any other.

    A host in other scripts is given in its ASCII form, which no look-alike letter can copy. An
    address with a name before its host, or with characters that parsers disagree on, is none.
    """
    if any(char <= " " or char in "\\\x7f" for char in address):
        return ""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            return ""
        host = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    except ValueError:
        return ""
    return f"{host}:{port}" if port is not None else host
