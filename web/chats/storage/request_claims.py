"""Which chat a request made: the same request again is the same chat, on every server, for good."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable

from web.harness.sessions.event_log import EventLog
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import StoreError
from web.harness.values.events import Note

CLAIM_SECONDS = 4.0
"""Whoever makes a chat waits no longer for a store that does not answer."""

_CLAIMED, _MADE = "claimed", "made"


class Claims:
    """Claims of chat ids by requests, in a durable event log: the first in it stands."""

    def __init__(self, events: EventLog) -> None:
        self._events = events

    async def claim(
        self,
        identity: HarnessIdentity,
        request_id: str,
        chat_id: str,
        is_gone: Callable[[str], Awaitable[bool]],
    ) -> str:
        """The id of the chat that a request makes or has made: `chat_id`, or another where the
        request was heard before. A chat that was made and `is_gone` by now is another's no more.

        Raises StoreError.
        """
        run_id = _run_of(identity, request_id)
        try:
            async with asyncio.timeout(CLAIM_SECONDS):
                if (found := await self._standing(run_id, is_gone)) is not None:
                    return found
                self._events.append(run_id, [Note(_CLAIMED, chat_id)])
                await self._events.flush(run_id)
                return await self._standing(run_id, is_gone) or chat_id
        except TimeoutError:
            raise StoreError(
                "The chat was not made. The store of chats does not answer.",
                hint="Try again in a moment.",
                code="store_busy",
            ) from None

    def made(self, identity: HarnessIdentity, request_id: str, chat_id: str) -> None:
        """Notes that the chat is there: if it is not later, it was deleted."""
        self._events.append(_run_of(identity, request_id), [Note(_MADE, chat_id)])

    async def forget(self, identity: HarnessIdentity, request_id: str) -> None:
        await self._events.forget(_run_of(identity, request_id))

    async def _standing(self, run_id: str, is_gone: Callable[[str], Awaitable[bool]]) -> str | None:
        notes = [each.body for each in (await self._events.read(run_id)).events]
        made = {note.detail for note in notes if isinstance(note, Note) and note.text == _MADE}
        for note in notes:
            if not isinstance(note, Note) or note.text != _CLAIMED:
                continue
            if note.detail not in made or not await is_gone(note.detail):
                return note.detail
        return None


def _run_of(identity: HarnessIdentity, request_id: str) -> str:
    """The id under which the event log has the claims of a request."""
    whose = json.dumps([identity.tenant_id, identity.user_id, request_id])
    return f"chat-of-{hashlib.sha256(whose.encode()).hexdigest()}"
