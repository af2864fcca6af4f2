"""The file of tokens: who may use this server, a line each; read again when it changes."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from web.harness.values.errors import ConfigurationError

log = logging.getLogger(__name__)

MAX_BYTES = 1_000_000
CHECK_SECONDS = 1.0
"""The file is looked at so often at most."""
MAX_NAME_CHARS = 200

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{20,512}")
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")
_SHAPE = "A line is TOKEN USER, or TOKEN USER TENANT; '#' begins a remark"

LOCAL_TENANT = "local"
"""Of the person at this machine, who comes without a token."""


class Holder(NamedTuple):
    """Whose a token is; `tenant` is '' where the file names none."""

    user: str
    tenant: str


class _State(NamedTuple):
    """What is another one whenever a file was written, replaced, or given other rights."""

    inode: int
    size: int
    modified: int
    changed: int


class TokenFile:
    """Tokens of a file, as lines `TOKEN USER [TENANT]`.

    A token has 20 to 512 letters, digits and `._~+/=-`, and only its owner may read the file; or
    it is written as `sha256:` and the digest in hexadecimal digits, and others may read it too, but
    not write it. A change counts within `CHECK_SECONDS` seconds. If the file cannot be used then,
    what it said before stays in force, which is logged; once it is gone, nobody is known.
    `now` returns seconds of a clock that never goes back.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigurationError for a file that cannot be used, naming the line at fault."""
        self._path = path.absolute()
        self._now = now
        self._holders: dict[bytes, Holder] = {}
        self._checked_at = now()
        try:
            self._seen: _State | None = self._look()
        except FileNotFoundError:
            raise self._refusal("does not exist") from None
        self._holders = self._read()

    def holder(self, token: str) -> Holder | None:
        """Whose a token is; None for one that the file lacks."""
        if not _TOKEN.fullmatch(token):
            return None
        self._refresh()
        # Found by its digest, so that the time it takes says nothing of a token.
        return self._holders.get(hashlib.sha256(token.encode()).digest())

    def __len__(self) -> int:
        return len(self._holders)

    def _refresh(self) -> None:
        if self._now() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = self._now()
        try:
            seen = self._look()
        except FileNotFoundError:
            if self._holders:
                log.error("The file of tokens %s is gone: nobody is known now.", self._path)
            self._holders, self._seen = {}, None
            return
        except ConfigurationError as error:
            log.error("%s What it said before stays in force.", error.message)
            return
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._holders = self._read()
        except ConfigurationError as error:
            log.error("%s What it said before stays in force.", error.message)

    def _look(self) -> _State:
        """Raises FileNotFoundError, and ConfigurationError where it cannot be looked at."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._refusal(f"cannot be read: {error.strerror}") from None
        return _State(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def _read(self) -> dict[bytes, Holder]:
        try:
            # Without O_NONBLOCK a pipe in the place of the file would be waited for.
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise self._refusal(f"cannot be read: {error.strerror}") from None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise self._refusal("is no file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise self._refusal(f"cannot be read: {error.strerror}") from None
        finally:
            os.close(descriptor)
        if len(content) > MAX_BYTES:
            raise self._refusal(f"has more than {MAX_BYTES:,} bytes")
        try:
            lines = content.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise self._refusal("is not text in UTF-8") from None
        holders, has_secrets = self._parsed(lines)
        self._check_mode(found.st_mode, has_secrets)
        return holders

    def _parsed(self, lines: list[str]) -> tuple[dict[bytes, Holder], bool]:
        """The holders by the digests of their tokens, and whether a token stands there as it is."""
        holders: dict[bytes, Holder] = {}
        has_secrets = False
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            token, *names = words
            known = _DIGEST.fullmatch(token)
            if known is None and not _TOKEN.fullmatch(token):
                raise self._refusal(
                    f"has in line {number} no token of 20 to 512 letters, digits and ._~+/=-"
                )
            if not 1 <= len(names) <= 2 or any(not _is_name(name) for name in names):
                raise self._refusal(f"cannot be understood in line {number}. {_SHAPE}")
            if names[1:] == [LOCAL_TENANT]:
                raise self._refusal(
                    f"names in line {number} the tenant '{LOCAL_TENANT}', which is this machine's"
                )
            has_secrets |= known is None
            digest = bytes.fromhex(known[1]) if known else hashlib.sha256(token.encode()).digest()
            if digest in holders:
                raise self._refusal(f"has in line {number} a token that it has before")
            holders[digest] = Holder(names[0], names[1] if len(names) == 2 else "")
        if not holders:
            raise self._refusal(f"has no token. {_SHAPE}")
        return holders, has_secrets

    def _check_mode(self, mode: int, has_secrets: bool) -> None:
        if os.name != "posix":
            return
        if mode & 0o022:
            raise self._refusal("can be changed by others; make it yours alone (chmod 600)")
        if has_secrets and mode & 0o077:
            raise self._refusal(
                "can be read by others; make it yours alone (chmod 600), or write "
                "sha256:DIGEST in place of each token"
            )

    def _refusal(self, words: str) -> ConfigurationError:
        return ConfigurationError(f"The file of tokens {self._path} {words}.")


def _is_name(text: str) -> bool:
    return len(text) <= MAX_NAME_CHARS and text.isprintable()
