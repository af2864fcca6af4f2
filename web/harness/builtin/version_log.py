"""`.harness/versions.jsonl`: every change of a folder's files, one JSON line each.

Lines are only ever added, in this order for a change: `{"plan": VERSION, "path"}` before a file is
touched, `{"done": number, "path", "stamp"}` after it. A plan without its end is what a crash
leaves, and it is found out by looking at the file whether the change happened. `{"drop": number,
"path"}` says that versions up to that number are not kept any more, `{"undone": number, "path"}`
that a plan came to nothing. When most lines say nothing new, the file is written anew. Its first
line, `{"log": 1, "token"}`, tells such a new file from the one before.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from web.harness.builtin.paths import fault_of
from web.harness.builtin.rooted import Stamp, make_temporary, write_all
from web.harness.builtin.versions import (
    History,
    Version,
    read_version,
    text,
    version_data,
    whole,
)
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

LOG_NAME = "versions.jsonl"
_HEAD_BYTES = 128
_SPARE_LINES = 2_000
"""So many lines may say nothing new before it is looked whether a new file is worth it."""


class VersionLog:
    """The histories of all paths, as the log tells them. Used under the lock of the folder.

    Other processes write to the same log: `refresh` reads what they added. `foreign` says that
    some of it is not understood: a later program wrote it, or somebody by hand.
    """

    def __init__(self) -> None:
        self.histories: dict[str, History] = {}
        self.open_plan: tuple[str, Version] | None = None
        self._forget_all()

    def _forget_all(self) -> None:
        self.histories = {}
        self.open_plan = None
        self._head = b""
        self._end = 0
        self._lines = 0
        self.foreign = False

    def history(self, path: str) -> History:
        """The history of a path, empty where nothing was written down."""
        return self.histories.get(path) or History()

    def refresh(self, reserved: int) -> None:
        """Reads what is new. An unfinished last line is cut off: a crash left it."""
        try:
            descriptor = _open_log(reserved, os.O_RDWR)
        except FileNotFoundError:
            self._forget_all()
            return
        try:
            self._read_new(descriptor)
        finally:
            os.close(descriptor)

    def plan(self, reserved: int, path: str, version: Version) -> None:
        """Writes down what is about to happen. It is on the disk when this returns."""
        self._add(reserved, [_plan_line(path, version)], sync=True)

    def done(self, reserved: int, path: str, number: int, stamp: Stamp | None) -> None:
        """Writes down that it happened. Losing this line loses nothing: see `settle`."""
        self._add(reserved, [_done_line(path, number, stamp)])

    def settle(self, reserved: int, sha256: str, stamp: Stamp | None) -> None:
        """Ends the plan that a crash left open; the file is now as `sha256` says, '' for none."""
        if self.open_plan is None:
            return
        path, version = self.open_plan
        before = self.history(path).last
        if sha256 == (before.sha256 if before is not None else ""):
            self.undo(reserved)
        else:
            # It happened, and where the file is something else, somebody changed it since.
            own = sha256 == version.sha256
            self.done(reserved, path, version.number, stamp if own else None)

    def undo(self, reserved: int) -> None:
        """Writes down that what was planned has not happened."""
        if self.open_plan is not None:
            path, version = self.open_plan
            self._add(reserved, [{"undone": version.number, "path": path}])

    def drop(self, reserved: int, numbers: dict[str, int]) -> None:
        """Forgets the versions of each path up to a number."""
        lines = [{"drop": number, "path": path} for path, number in numbers.items()]
        self._add(reserved, lines)

    def compact(self, reserved: int, spare: int = _SPARE_LINES) -> None:
        """Writes the log anew where most of it, but for `spare` lines, is of no use any more."""
        live = sum(2 * len(history.versions) for history in self.histories.values())
        # Lines of a later program are not understood, and so not thrown away.
        if self.foreign or self.open_plan or self._lines <= 2 * live + spare:
            return
        lines: list[JsonObject] = []
        for path, history in self.histories.items():
            lines += [_plan_line(path, version) for version in history.versions]
            lines.append(_done_line(path, history.next_number - 1, history.stamp))
        name, descriptor = make_temporary(reserved)
        try:
            head = _head_line()
            write_all(descriptor, head + _encoded(lines))
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
            os.replace(name, LOG_NAME, src_dir_fd=reserved, dst_dir_fd=reserved)
            os.fsync(reserved)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=reserved)
            raise
        finally:
            os.close(descriptor)
        self._head, self._end, self._lines = head, size, len(lines)

    def _add(self, reserved: int, lines: list[JsonObject], *, sync: bool = False) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        descriptor = _open_log(reserved, flags)
        try:
            data = _encoded(lines)
            size = os.fstat(descriptor).st_size
            if size == 0:
                self._head = _head_line()
                data = self._head + data
            try:
                write_all(descriptor, data)
                if sync:
                    os.fsync(descriptor)
            except OSError:
                # On a full disk a part of a line may stand, and would spoil the next one.
                os.ftruncate(descriptor, size)
                raise
            self._end += len(data)
        finally:
            os.close(descriptor)
        for line in lines:
            self._take(line)

    def _read_new(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        head = os.pread(descriptor, _HEAD_BYTES, 0).partition(b"\n")[0] + b"\n"
        if head != self._head or size < self._end:
            self._forget_all()
        if size == self._end:
            return
        data = os.pread(descriptor, size - self._end, self._end)
        complete = data.rfind(b"\n") + 1
        if complete < len(data):
            os.ftruncate(descriptor, self._end + complete)
        if complete and not self._end:
            self._head = head
        self._end += complete
        for line in data[:complete].splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                self._take(json.loads(line))

    def _take(self, line: Any) -> None:
        """Follows one line. One that says nothing known is passed over."""
        self._lines += 1
        if not isinstance(line, dict) or "log" in line:
            return
        try:
            path = text(line["path"])
            if fault_of(path):
                raise ValueError("no file of the folder has such a path")
            if "plan" in line:
                version = read_version(line["plan"])
                self._keep_plan()
                self.open_plan = (path, version)
            elif "done" in line:
                whole(line["done"])
                stamp = _read_stamp(line.get("stamp"))
                self._keep_plan()
                self.histories[path].stamp = stamp
            elif "undone" in line:
                self._undo(path, whole(line["undone"]))
            elif "drop" in line:
                self._forget(path, whole(line["drop"]))
            else:
                self.foreign = True
        except (KeyError, TypeError, ValueError):
            self.foreign = True

    def _keep_plan(self) -> None:
        """A plan that others follow, or its end does, has happened."""
        if self.open_plan is None:
            return
        path, version = self.open_plan
        self.open_plan = None
        history = self.histories.setdefault(path, History())
        if version.number < history.next_number:
            # Numbers only ever grow.
            self.foreign = True
            return
        history.versions.append(version)
        history.stamp = None

    def _undo(self, path: str, number: int) -> None:
        plan = self.open_plan
        if plan is None or (plan[0], plan[1].number) != (path, number):
            raise ValueError("nothing of that kind is planned")
        self.open_plan = None

    def _forget(self, path: str, number: int) -> None:
        history = self.histories[path]
        history.versions = [each for each in history.versions if each.number > number]
        if not history.versions:
            del self.histories[path]


def _plan_line(path: str, version: Version) -> JsonObject:
    return {"plan": version_data(version), "path": path}


def _done_line(path: str, number: int, stamp: Stamp | None) -> JsonObject:
    return {"done": number, "path": path, "stamp": stamp}


def _read_stamp(value: Any) -> Stamp | None:
    """The stamp in a line; times may be before 1970."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(type(each) is int for each in value):
        raise TypeError("no stamp")
    return Stamp(*value)


def _head_line() -> bytes:
    return _encoded([{"log": 1, "token": secrets.token_hex(8)}])


def _encoded(lines: Iterable[JsonObject]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


@contextlib.contextmanager
def opened_log(reserved: int) -> Iterator[int]:
    """A descriptor of the log, to be read by position: what is there stays, more may follow."""
    descriptor = _open_log(reserved, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_log(reserved: int, flags: int) -> int:
    """The log, if it is a plain file: what is written to it must go nowhere else."""
    safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(LOG_NAME, safe, 0o644, dir_fd=reserved)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise ToolError("The list of versions is not a plain file; see .harness.") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise ToolError("The list of versions is not a plain file; see .harness.")
    return descriptor
