"""The quiet lines of a run: what a person is told beside the answer."""

from __future__ import annotations

from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Notice
from web.chats.transcript.run_words import RESUMED, UNPAUSED
from web.chats.transcript.turn_state import TurnState


class Notes:
    """Puts them into a channel, each at the end of its run's slot."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def put(self, turn: TurnState, text: str, detail: str = "") -> None:
        turn.notices += 1
        self._channel.put(f"n-{turn.key}-{turn.notices}", turn.slot, Notice(text, detail))
        if text in (RESUMED, UNPAUSED):
            self.tell_once(turn)

    def tell_once(self, turn: TurnState) -> None:
        """Where a run stood still twice and nothing stands between, one line says it."""
        *_, before, last = [None, None, *self._channel.slot(turn.slot)]
        if before is None or last is None or not isinstance(last.data, Notice):
            return
        if last.data == before.data and last.data.text in (RESUMED, UNPAUSED):
            self._channel.remove(before.id)
