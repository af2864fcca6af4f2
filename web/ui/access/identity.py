"""Who asks: the person at this machine, whom a trusted proxy names, or who holds a token."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.values.errors import ConfigurationError, HarnessError
from web.ui.access.token_file import TokenFile

TENANT = "default"
"""The tenant of those of whom none is told. It is not that of the local user."""
COOKIE = "harness-web-token"
"""Where a browser keeps its token."""
COOKIE_SECONDS = 30 * 24 * 3600
MAX_NAME_CHARS = 200

Headers = Iterable[tuple[bytes, bytes]]
"""As ASGI has them: names in lower case, the same one as often as it was sent."""

_WAYS = "Write header:NAME, header:NAME,TENANT or token:FILE"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# Every browser sends these by itself, so that their being there says nothing of a proxy.
_NOT_A_PROXYS = {"accept", "authorization", "cookie", "host", "origin", "referer", "user-agent"}


class RequestIdentity(Protocol):
    """Tells whose request it is.

    `is_local` is true where everybody who reaches the server is taken for the person at this
    machine; only then is anybody `LOCAL_IDENTITY`.
    """

    @property
    def is_local(self) -> bool: ...

    @property
    def hint(self) -> str:
        """What a stranger can do, in words."""
        ...

    def identify(self, headers: Headers, peer: str | None) -> HarnessIdentity | None:
        """The identity behind a request; None for a stranger.

        `peer` is the address of the connection itself, whatever headers say; None if not known.
        """
        ...


class LocalPerson:
    """Everybody is the person at this machine: for a server that listens on loopback."""

    is_local = True
    hint = ""

    def identify(self, headers: Headers, peer: str | None) -> HarnessIdentity:
        return LOCAL_IDENTITY


class ProxyIdentity:
    """A proxy at one of the addresses signs people in and names them in a header.

    Of requests from elsewhere the header means nothing. The proxy has to replace what a client
    sends under that name: where it comes twice, nobody is named.
    """

    is_local = False
    hint = "Come by the address of the proxy that signs you in; it says who you are."

    def __init__(self, user_header: str, tenant_header: str | None, proxies: Addresses) -> None:
        """Raises ConfigurationError for names that are none of a header."""
        self._user = _header_name(user_header)
        self._tenant = _header_name(tenant_header) if tenant_header is not None else None
        if self._user == self._tenant:
            raise ConfigurationError(f"'{user_header}' cannot name both user and tenant.")
        self._proxies = proxies

    def identify(self, headers: Headers, peer: str | None) -> HarnessIdentity | None:
        if peer is None or peer not in self._proxies:
            return None
        found = list(headers)
        user = _name_in(found, self._user)
        tenant = TENANT if self._tenant is None else _name_in(found, self._tenant)
        if user is None or tenant is None or tenant == LOCAL_IDENTITY.tenant_id:
            return None
        return HarnessIdentity(tenant, user)


class TokenIdentity:
    """Whoever holds a token of the file: programs as `Authorization: Bearer`, browsers as a cookie.

    Where both come, the header counts.
    """

    is_local = False
    hint = (
        "Sign in with your token, in another tab if you have typed something here. Programs send "
        "it in the header Authorization: Bearer."
    )

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def identify(self, headers: Headers, peer: str | None) -> HarnessIdentity | None:
        token = _token_in(list(headers))
        return self.of(token) if token is not None else None

    def of(self, token: str) -> HarnessIdentity | None:
        """Whose a token is, for a page where people sign in with theirs."""
        holder = self._tokens.holder(token)
        if holder is None:
            return None
        return HarnessIdentity(holder.tenant or TENANT, holder.user)


class Addresses:
    """Addresses and networks, as a person writes them: `10.0.0.5`, `10.1.0.0/16`, `fd00::/8`."""

    def __init__(self, given: Iterable[str]) -> None:
        """Each of `given` may be several, with commas. Raises ConfigurationError."""
        texts = [text.strip() for each in given for text in each.split(",")]
        self._networks = [_network(text) for text in texts if text]

    def __contains__(self, address: object) -> bool:
        try:
            found = ipaddress.ip_address(str(address))
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address):
            # A socket for both kinds tells of the older one in this way.
            found = found.ipv4_mapped or ipaddress.IPv6Address(int(found))
        return any(found in network for network in self._networks)

    def __len__(self) -> int:
        return len(self._networks)


def unknown_identity(identity: RequestIdentity) -> HarnessError:
    """What a stranger is told."""
    return HarnessError("It is not known who asks.", hint=identity.hint, code="unknown_identity")


def read_identity(option: str | None, proxies: Sequence[str] = ()) -> RequestIdentity:
    """What `--identity` asks for; the person at this machine without one.

    `proxies` are the addresses of the proxies that are trusted. Raises ConfigurationError in words
    that hold no token.
    """
    if option is None:
        if proxies:
            raise ConfigurationError(
                "A proxy is trusted to say who asks, and no header is named in which it says it.",
                hint="Say --identity header:NAME too.",
            )
        return LocalPerson()
    kind, _, rest = option.partition(":")
    match kind:
        case "header" if rest.strip():
            names = [name.strip() for name in rest.split(",")]
            if len(names) > 2:
                raise ConfigurationError(f"'{option}' names more than two headers.", hint=_WAYS)
            trusted = Addresses(proxies)
            if not trusted:
                raise ConfigurationError(
                    "A header names who asks, and everybody could send it.",
                    hint="Give the address of the proxy that sets it with --trusted-proxy; no "
                    "other one is believed.",
                )
            return ProxyIdentity(names[0], names[1] if len(names) == 2 else None, trusted)
        case "token" if rest.strip():
            if proxies:
                raise ConfigurationError("With tokens no proxy is trusted.", hint=_WAYS)
            return TokenIdentity(TokenFile(Path(rest.strip()).expanduser()))
    raise ConfigurationError(f"'{option[:80]}' is no way to know who asks.", hint=_WAYS)


def check_reach(host: str, identity: RequestIdentity) -> None:
    """Raises ConfigurationError where others could reach a server that takes all for one person."""
    if identity.is_local and not is_loopback(host):
        raise ConfigurationError(
            f"'{host}' is not an address that this machine alone reaches, and everybody who "
            "reaches the server would be its one person.",
            hint=f"{_WAYS} as --identity, or use 127.0.0.1, ::1 or localhost.",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there. Names other than localhost do not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether it stands for all addresses of this machine, as `0.0.0.0` and `::` do."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def token_cookie(token: str, *, secure: bool) -> str:
    """The `Set-Cookie` header with which a browser keeps a token, out of the reach of scripts.

    An empty token forgets it. `secure` is for pages that came over https.
    """
    seconds = COOKIE_SECONDS if token else 0
    safe = "; Secure" if secure else ""
    return f"{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{safe}"


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise ConfigurationError(
            f"'{text}' is not the address of a proxy.",
            hint="Write an address such as 10.0.0.5, or a network from its first address on, such "
            "as 10.1.0.0/16.",
        ) from None
    if network.prefixlen == 0:
        raise ConfigurationError(
            f"'{text}' is everybody, who then could say to be anybody.",
            hint="Name the proxy alone.",
        )
    return network


def _header_name(text: str) -> bytes:
    if not _HEADER_NAME.fullmatch(text) or text.lower() in _NOT_A_PROXYS:
        raise ConfigurationError(
            f"'{text[:80]}' is no header in which a proxy names people.",
            hint="Such as X-Forwarded-User.",
        )
    return text.lower().encode()


def _values(headers: Collection[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _name_in(headers: Collection[tuple[bytes, bytes]], header: bytes) -> str | None:
    """The one name that a header has, if it is one that can be kept and shown."""
    values = _values(headers, header)
    if len(values) != 1:
        return None
    try:
        name = values[0].decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    return name if 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() else None


def _token_in(headers: Collection[tuple[bytes, bytes]]) -> str | None:
    authorizations = _values(headers, b"authorization")
    if authorizations:
        scheme, _, token = authorizations[0].decode("latin-1").strip().partition(" ")
        known = len(authorizations) == 1 and scheme.lower() == "bearer"
        return token.strip() if known else None
    pairs = (
        pair.partition("=")
        for value in _values(headers, b"cookie")
        for pair in value.decode("latin-1").split(";")
    )
    kept = {value.strip() for name, _, value in pairs if name.strip() == COOKIE}
    # A cookie that comes twice with two values was set by somebody else beside.
    return kept.pop() if len(kept) == 1 else None
