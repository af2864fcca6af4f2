"""`.harness/objects/`: the content of versions, each piece once, named by its SHA-256.

Content comes in through `.harness/incoming/`, so that what has a digest for a name is whole. Who
brings something in holds a lock on its file there: one that nobody holds was left by a crash.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from web.harness.builtin.rooted import make_temporary, write_all
from web.harness.tools.beneath import FILE_MODE, chunks_of, open_folder, open_plain
from web.harness.tools.sniff import HEAD_BYTES, media_type_of
from web.harness.values.errors import LimitExceeded, NotFound, ToolError

OBJECTS, INCOMING = "objects", "incoming"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Content:
    """What some data is."""

    sha256: str
    size: int
    media_type: str


NOTHING = Content("", 0, "")
"""What stands for the content of a file that is not there."""


class Measure:
    """Tells what data is while it passes by, piece by piece."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._head = b""

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._digest.update(data)
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]

    @property
    def content(self) -> Content:
        return Content(self._digest.hexdigest(), self.size, media_type_of(self._head))


class Incoming:
    """Content on its way in. `close` ends it in any case; what was not kept is removed then."""

    def __init__(self, reserved: int, limit: int) -> None:
        """`reserved` is a descriptor of the reserved folder; `limit` bounds the size in bytes."""
        self._limit = limit
        self._measure = Measure()
        self._kept = False
        self._folder = open_folder(reserved, INCOMING, create=True)
        try:
            self._name, self._descriptor = _made_and_held(self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    @property
    def content(self) -> Content:
        return self._measure.content

    def add(self, data: bytes) -> None:
        """Raises LimitExceeded as soon as there is too much."""
        if self._measure.size + len(data) > self._limit:
            raise LimitExceeded(
                f"The content is larger than {self._limit:,} bytes, the limit of one file."
            )
        write_all(self._descriptor, data)
        self._measure.add(data)

    def keep(self, reserved: int) -> Content:
        """Gives it its name among the objects. It is on the disk when this returns.

        Once more, under the same lock, it does nothing.
        """
        content = self.content
        if self._kept:
            return content
        os.fchmod(self._descriptor, FILE_MODE)
        os.fsync(self._descriptor)
        objects = open_folder(reserved, OBJECTS, create=True)
        try:
            os.replace(self._name, content.sha256, src_dir_fd=self._folder, dst_dir_fd=objects)
            self._kept = True
            os.fsync(objects)
        finally:
            os.close(objects)
        return content

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)
        os.close(self._descriptor)
        os.close(self._folder)


def _made_and_held(folder: int) -> tuple[str, int]:
    while True:
        name, descriptor = make_temporary(folder)
        # Between the two steps it looks abandoned: who took it for that removes it.
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return name, descriptor
        os.close(descriptor)


@contextlib.contextmanager
def opened_object(reserved: int, sha256: str) -> Iterator[int]:
    """A descriptor of kept content. Raises NotFound where it is not there any more."""
    if not _DIGEST.fullmatch(sha256):
        raise NotFound("The content of this version is not kept.")
    try:
        objects = open_folder(reserved, OBJECTS, create=False)
    except FileNotFoundError:
        raise NotFound("The content of this version is not kept any more.") from None
    try:
        descriptor = open_plain(objects, sha256, sha256)
    except NotFound:
        raise NotFound("The content of this version is not kept any more.") from None
    finally:
        os.close(objects)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def checked_chunks(descriptor: int, sha256: str) -> Iterator[bytes]:
    """The content, piece by piece. Raises ToolError at its end where it is not what it was."""
    digest = hashlib.sha256()
    for chunk in chunks_of(descriptor):
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != sha256:
        raise ToolError("The kept content of this version was changed, and is not used.")


def remove_objects(reserved: int, digests: Iterable[str]) -> None:
    """Removes kept content; what is not there is fine."""
    objects = open_folder(reserved, OBJECTS, create=True)
    try:
        for sha256 in digests:
            with contextlib.suppress(OSError):
                os.unlink(sha256, dir_fd=objects)
    finally:
        os.close(objects)


def remove_unused(reserved: int, used: set[str]) -> None:
    """Removes what a crash left: content that no version holds, and what was on its way in."""
    objects = open_folder(reserved, OBJECTS, create=True)
    try:
        unused = [name for name in os.listdir(objects) if name not in used]
    finally:
        os.close(objects)
    remove_objects(reserved, unused)
    incoming = open_folder(reserved, INCOMING, create=True)
    try:
        for name in os.listdir(incoming):
            with contextlib.suppress(OSError):
                _remove_abandoned(incoming, name)
    finally:
        os.close(incoming)


def _remove_abandoned(incoming: int, name: str) -> None:
    if not stat.S_ISREG(os.stat(name, dir_fd=incoming, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=incoming)
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=incoming)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=incoming)
    finally:
        os.close(descriptor)
