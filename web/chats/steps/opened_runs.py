"""Runs that were opened from a file: to be looked at while this server has them in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from web.chats.steps.run_files import RunFile, read_run_file
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound

MAX_OPENED = 10
"""Of one person; beyond it their oldest is closed."""

MAX_OPENED_BYTES = 64 * 1024 * 1024
"""Of all files that are open, of everybody; beyond it the oldest are closed."""


@dataclass(frozen=True, slots=True)
class _Opened:
    run: RunFile
    size: int


class OpenedRuns:
    """Keeps what was opened, each for whoever opened it. `new_id` makes ids nobody can guess."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._kept: OrderedDict[tuple[HarnessIdentity, str], _Opened] = OrderedDict()

    async def open(self, identity: HarnessIdentity, data: bytes) -> str:
        """Opens a file; returns its id. Raises RunFileRefused, LimitExceeded."""
        run = await run_in_thread(lambda: read_run_file(data))
        opened_id = self._new_id()
        self._kept[identity, opened_id] = _Opened(run, len(data))
        own = [key for key in self._kept if key[0] == identity]
        for key in own[:-MAX_OPENED]:
            del self._kept[key]
        while len(self._kept) > 1 and self._size() > MAX_OPENED_BYTES:
            self._kept.popitem(last=False)
        return opened_id

    def get(self, identity: HarnessIdentity, opened_id: str) -> RunFile:
        """Raises NotFound for one that was closed, or is somebody else's."""
        opened = self._kept.get((identity, opened_id))
        if opened is None:
            raise NotFound(
                "This run is not open here any more.",
                hint="What was opened is kept for a while only. Open its file again.",
            )
        self._kept.move_to_end((identity, opened_id))
        return opened.run

    def _size(self) -> int:
        return sum(opened.size for opened in self._kept.values())
