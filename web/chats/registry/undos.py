"""Words on what was deleted, near the message box for some seconds, with what brings it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from web.chats.chat import Chat
from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Undo
from web.chats.tasks import TaskOwner
from web.harness.sessions.identity import HarnessIdentity

UndoOf = Literal["file", "skill", "upload", "memory"]


class Undos:
    """Shows the newest of each kind beside the chats of its person, until its time is up.

    `now` gives seconds since the epoch; `seconds` is how long each is shown.
    """

    def __init__(
        self,
        tasks: TaskOwner,
        side_bar: Callable[[HarnessIdentity], Channel],
        now: Callable[[], float],
        seconds: float,
    ) -> None:
        self._tasks = tasks
        self._side_bar = side_bar
        self._now = now
        self._seconds = seconds
        self._ends: dict[tuple[HarnessIdentity, UndoOf], asyncio.Task[None]] = {}

    def offer(self, chat: Chat, of: UndoOf, title: str, ref: str = "") -> None:
        """Tells of something that was deleted in a chat, in place of what was told before."""
        self.drop(chat.identity, of)
        undo = Undo(chat.id, title, self._now() + self._seconds, of, ref)
        self._side_bar(chat.identity).put(f"z-{of}", "undo", undo)
        ending = self._tasks.create_task(self._end_later(chat.identity, of))
        self._ends[chat.identity, of] = ending

    def drop_ref(self, identity: HarnessIdentity, of: UndoOf, ref: str) -> None:
        """Takes a word away if it is about that."""
        part = self._side_bar(identity).get(f"z-{of}")
        if part is not None and isinstance(part.data, Undo) and part.data.ref == ref:
            self.drop(identity, of)

    def drop(self, identity: HarnessIdentity, of: UndoOf, title: str | None = None) -> None:
        """Takes a word away; with a title only one that is about that."""
        side_bar = self._side_bar(identity)
        part = side_bar.get(f"z-{of}")
        if part is None or not isinstance(part.data, Undo) or title not in (None, part.data.title):
            return
        side_bar.remove(part.id)
        ending = self._ends.pop((identity, of), None)
        if ending is not None:
            ending.cancel()

    async def _end_later(self, identity: HarnessIdentity, of: UndoOf) -> None:
        await asyncio.sleep(self._seconds)
        del self._ends[identity, of]
        self._side_bar(identity).remove(f"z-{of}")
