"""Where the grants of signed-in MCP servers are kept: in memory, or in a file of one user."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

FORMAT = 1
MAX_FILE_BYTES = 4 * 2**20
MAX_GRANT_BYTES = 64 * 1024
MAX_ISSUERS = 4
"""Of one server whose grants are kept, lest one that names ever new ones fills the file."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one authorisation server gave for one MCP server. Its representation tells no secret.

    `client` is how this program is known there (RFC 7591), `tokens` its answer (RFC 6749, None
    before a person has signed in), which runs out at `expires_at` (Unix seconds, None: not told).
    `metadata` (RFC 8414) and `resource` (RFC 9728) say where and for what the tokens are renewed.
    """

    issuer: str
    client: JsonObject = field(repr=False)
    tokens: JsonObject | None = field(default=None, repr=False)
    expires_at: float | None = None
    metadata: JsonObject | None = field(default=None, repr=False)
    resource: JsonObject | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Key:
    owner: str
    server: str
    issuer: str


_Grants = dict[_Key, Grant]


class TokenStore:
    """Grants in memory, by whose they are, by the server's address and by the issuer.

    Serves any number of connections of one event loop.
    """

    def __init__(self) -> None:
        self._grants: _Grants = {}
        self._renewing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._watchers: list[tuple[str, str, Callable[[bool], None]]] = []

    async def find(self, owner: str, server: str) -> Grant | None:
        """The grant of a server that was kept last. Raises ConfigurationError in words."""
        for key, grant in reversed((await self._read()).items()):
            if (key.owner, key.server) == (owner, server):
                return grant
        return None

    async def keep(self, owner: str, server: str, grant: Grant) -> None:
        """Keeps a grant in the place of the one of that issuer. Raises as `find`, also where it
        is too large.
        """
        key = _Key(owner, server, grant.issuer)
        if _size(key, grant) > MAX_GRANT_BYTES:
            raise ConfigurationError(
                f"The sign-in service wants over {MAX_GRANT_BYTES // 1024} KB to be kept."
            )
        grants = dict(await self._read())
        grants.pop(key, None)
        others = [each for each in grants if (each.owner, each.server) == (owner, server)]
        for each in others[: max(0, len(others) - MAX_ISSUERS + 1)]:
            del grants[each]
        await self._write({**grants, key: grant})

    async def forget_tokens(self, owner: str, server: str) -> None:
        """Forgets the tokens of a server; this program stays registered. Raises as `find`."""
        grants = await self._read()
        kept = {
            key: replace(grant, tokens=None, expires_at=None)
            if (key.owner, key.server) == (owner, server)
            else grant
            for key, grant in grants.items()
        }
        if kept != grants:
            await self._write(kept)

    def renewing(self, owner: str, server: str) -> asyncio.Lock:
        """Held while tokens are renewed: a renewed one often makes the one before it worthless."""
        lock = self._renewing.get((owner, server))
        if lock is None:
            lock = self._renewing[(owner, server)] = asyncio.Lock()
        return lock

    def watch(self, owner: str, server: str, told: Callable[[bool], None]) -> Callable[[], None]:
        """Calls `told` when a person has signed in (True) or out; returns how to stop that."""
        watcher = (owner, server, told)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def tell(self, owner: str, server: str, *, signed_in: bool) -> None:
        """Tells every connection to a server, so that a person does it once for all."""
        for whose, where, told in list(self._watchers):
            if (whose, where) == (owner, server):
                told(signed_in)

    async def _read(self) -> _Grants:
        return self._grants

    async def _write(self, grants: _Grants) -> None:
        self._grants = grants


class FileTokenStore(TokenStore):
    """Grants in a file that only its user may read; it is made with the first one.

    The file is replaced as a whole, so it is never half written. A link, a file of somebody else
    and one that others can read are refused. One that is too large is left as it is, with a
    warning: then grants are kept in memory.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._writing = asyncio.Lock()
        self._in_memory = False

    def check(self) -> None:
        """Raises ConfigurationError where the file cannot be used as it is."""
        self._loaded()
        if not self._path.parent.is_dir():
            raise ConfigurationError(f"The folder of {self._path} does not exist.")
        try:
            # Only trying tells. The file is written beside its place and then put there.
            with tempfile.TemporaryFile(dir=self._path.parent):
                pass
        except OSError as error:
            raise self._refusal(f"cannot be written: {error.strerror}") from None

    async def keep(self, owner: str, server: str, grant: Grant) -> None:
        async with self._writing:
            await super().keep(owner, server, grant)

    async def forget_tokens(self, owner: str, server: str) -> None:
        async with self._writing:
            await super().forget_tokens(owner, server)

    async def _read(self) -> _Grants:
        return await run_in_thread(self._loaded)

    async def _write(self, grants: _Grants) -> None:
        if self._in_memory:
            self._grants = grants
        else:
            await run_in_thread(lambda: self._save(grants), finish=True)

    def _loaded(self) -> _Grants:
        if not self._in_memory:
            try:
                return self._load()
            except _TooLarge as error:
                log.warning(
                    "%s Sign-ins are kept in memory only; remove the file to keep them in it.",
                    error.message,
                )
                self._in_memory = True
        return self._grants

    def _load(self) -> _Grants:
        try:
            # Without O_NONBLOCK a pipe in the place of the file would be waited for.
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(self._path, flags)
        except FileNotFoundError:
            return {}
        except OSError as error:
            if self._path.is_symlink():
                raise self._refusal("is a link") from None
            raise self._refusal(f"cannot be read: {error.strerror}") from None
        try:
            self._check_private(os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
        if len(content) > MAX_FILE_BYTES:
            raise _TooLarge(self._refusal(f"has more than {MAX_FILE_BYTES:,} bytes").message)
        try:
            return _parsed(json.loads(content)) if content.strip() else {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._refusal("is no file of tokens that this program knows") from None

    def _check_private(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._refusal("is no file")
        if os.name == "posix":
            if found.st_uid != os.geteuid():
                raise self._refusal("belongs to another user")
            if found.st_mode & 0o077:
                raise self._refusal("can be read by others; make it yours alone (chmod 600)")

    def _save(self, grants: _Grants) -> None:
        content = json.dumps(_dumped(grants)).encode()
        if len(content) > MAX_FILE_BYTES:
            raise self._refusal(f"would have more than {MAX_FILE_BYTES:,} bytes")
        try:
            # Made with mode 0600, under a name that was not there.
            descriptor, made = tempfile.mkstemp(prefix=".tokens-", dir=self._path.parent)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(made, self._path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(made)
                raise
        except OSError as error:
            raise self._refusal(f"cannot be written: {error.strerror}") from None

    def _refusal(self, words: str) -> ConfigurationError:
        return ConfigurationError(f"The file of MCP tokens {self._path} {words}.")


class _TooLarge(ConfigurationError):
    """The file has more than is ever written to it."""


def _dumped(grants: _Grants) -> JsonObject:
    return {"format": FORMAT, "grants": [_entry(*each) for each in grants.items()]}


def _entry(key: _Key, grant: Grant) -> JsonObject:
    return {
        "owner": key.owner,
        "server": key.server,
        "issuer": key.issuer,
        "client": grant.client,
        "tokens": grant.tokens,
        "expires_at": grant.expires_at,
        "metadata": grant.metadata,
        "resource": grant.resource,
    }


def _size(key: _Key, grant: Grant) -> int:
    return len(json.dumps(_entry(key, grant)))


def _parsed(whole: Any) -> _Grants:
    if whole["format"] != FORMAT:
        raise ValueError("another format")
    grants: _Grants = {}
    for each in whole["grants"]:
        owner, server, issuer = (each[name] for name in ("owner", "server", "issuer"))
        grant = Grant(
            issuer=issuer,
            client=dict(each["client"]),
            tokens=each["tokens"],
            expires_at=each["expires_at"],
            metadata=each["metadata"],
            resource=each["resource"],
        )
        key = _Key(owner, server, issuer)
        # What an older version kept may be too much to be written again.
        if _size(key, grant) <= MAX_GRANT_BYTES:
            grants[key] = grant
    return grants
