"""What a person does with a run that is written down, and what is known of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from web.chats.chat import Chat
from web.harness.sessions.journal import NumberedStep
from web.harness.values.errors import HarnessError
from web.harness.values.events import Resolution

MAX_RECOVERY_CHARS = 100_000
"""Of what a person says that a call gave."""


class RunControl(Protocol):
    """The runs of chats, as whoever performs them has them. Each belongs to the chat it is asked
    for with: the caller has looked that up.

    Nothing here waits for a run: what comes of it is told by its events. All may raise StoreError.
    """

    async def resume(self, chat: Chat, run_id: str) -> None:
        """Goes on with a run that was cut off or paused; one under way is fine.

        Raises SessionConflict where another server has it or it has not begun, HarnessError
        (`runtime_differs`) with what differs, (`run_ended`), NotFound.
        """
        ...

    async def leave(self, chat: Chat, run_id: str) -> None:
        """Ends a run that stands still, as it is; what it did is kept. As `resume`."""
        ...

    async def pause(self, chat: Chat, run_id: str) -> None:
        """Has a run stop before its next step; one that stands still is fine.

        Raises SessionConflict for one that has not begun, HarnessError (`run_ended`), NotFound.
        """
        ...

    async def resolve(
        self, chat: Chat, run_id: str, key: str, how: Resolution, text: str = ""
    ) -> None:
        """Says what became of a call that was cut off; `text` is what it gave.

        Raises DecisionRefused for a key that is not open, or was answered.
        """
        ...

    async def steps(
        self, chat: Chat, run_id: str, after: int = 0, limit: int = 1_000
    ) -> Sequence[NumberedStep]:
        """Those after a number, the oldest first; none where nothing was written down."""
        ...


class NoRunControl:
    """Of a server whose runs live in its memory."""

    async def resume(self, chat: Chat, run_id: str) -> None:
        raise _not_kept()

    async def leave(self, chat: Chat, run_id: str) -> None:
        raise _not_kept()

    async def pause(self, chat: Chat, run_id: str) -> None:
        raise _not_kept()

    async def resolve(
        self, chat: Chat, run_id: str, key: str, how: Resolution, text: str = ""
    ) -> None:
        raise _not_kept()

    async def steps(
        self, chat: Chat, run_id: str, after: int = 0, limit: int = 1_000
    ) -> Sequence[NumberedStep]:
        return ()


def _not_kept() -> HarnessError:
    return HarnessError(
        "This server does not write its runs down, so this one cannot be paused or gone on with.",
        hint="Nothing was changed. Start the server with --backend to have runs written down.",
        code="not_written_down",
    )
