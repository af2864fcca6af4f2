"""How the entries of a chat's journal take effect in it."""

from __future__ import annotations

from web.chats.chat import Chat, Turn
from web.chats.journal import Entry, Journal, TurnBegun, TurnSent, TurnTakenBack


class Entries:
    """The part of `Turns` that writes entries and takes them in."""

    _journal: Journal
    _chats: dict[str, Chat]

    def take(self, chat: Chat, entry: Entry) -> None:
        """Takes in an entry of a chat's journal: one of this process, or of another before it."""
        match entry:
            case TurnSent():
                if entry.turn.request_id not in chat.requests:
                    chat.remember(entry.turn)
                    self._chats[entry.turn.run_id] = chat
                    chat.enqueue(entry.turn)
            case TurnTakenBack():
                chat.dequeue(entry.run_id)
                chat.runs.append(entry.run_id)
                self._chats[entry.run_id] = chat
            case TurnBegun():
                self._take_begun(chat, entry)

    def _take_begun(self, chat: Chat, begun: TurnBegun) -> None:
        turn = begun.turn
        chat.dequeue(turn.run_id)
        if turn.request_id:
            chat.remember(turn)
        if begun.instead_of:
            chat.transcript.take_back(begun.instead_of)
        chat.runs.append(turn.run_id)
        self._chats[turn.run_id] = chat
        chat.keep_attached(turn.run_id, turn.attachments)
        chat.transcript.begin(turn.run_id, turn.text, begun.at, turn.model, turn.attachments)

    def _begin(
        self, chat: Chat, turn: Turn, instead_of: str | None, at: float, *, retold: bool = False
    ) -> None:
        self._journal.write(chat, TurnBegun(turn, at, instead_of or "", retold))
