"""How the entries of a chat's journal take effect in it."""

from __future__ import annotations

import asyncio

from web.chats.chat import Chat, Turn
from web.chats.journal.journal import Entry, Journal, TurnBegun, TurnSent, TurnTakenBack


class Entries:
    """The part of `Turns` that writes entries and takes them in."""

    _journal: Journal
    _chats: dict[str, Chat]
    _own: set[str]

    def __init__(self) -> None:
        self._unheard: dict[str, asyncio.Future[None]] = {}
        """By run, of the turns of this process that the journal has not told of yet."""
        self._instead: dict[str, Turn] = {}
        """By run of this process: the turn that stands, as another server was first."""
        self._replaces: dict[str, str] = {}
        """By run that waits to be tried again: the one in whose place."""
        self._withdrawn: set[str] = set()
        """Runs of messages that could not be stored in time, until their entries are heard of."""
        self._decided: dict[tuple[type[Entry], str], asyncio.Future[bool]] = {}
        """Of what this process wrote last, whether it was the first; see `Accepting._is_first`."""

    def take(self, chat: Chat, entry: Entry) -> None:
        """Takes in an entry of a chat's journal: one of this process, or of another before it."""
        match entry:
            case TurnSent():
                self._take_sent(chat, entry)
            case TurnTakenBack():
                is_retry = self._replaces.pop(entry.run_id, None) is not None
                if (turn := chat.dequeue(entry.run_id)) is not None:
                    chat.taken_back[turn.run_id] = turn
                if entry.unsent:
                    self._withdrawn.discard(entry.run_id)
                if entry.unsent or is_retry:  # It can be asked for again.
                    chat.forget_request(entry.run_id)
                self._decide(chat, TurnTakenBack, entry.run_id)
                if entry.run_id not in chat.runs:  # It may be said twice, or too late.
                    chat.runs.append(entry.run_id)
                self._chats[entry.run_id] = chat
            case TurnBegun():
                self._take_begun(chat, entry)

    def _take_sent(self, chat: Chat, sent: TurnSent) -> None:
        """Of several turns of one request the first in the journal stands, on every server."""
        turn = sent.turn
        if turn.run_id in self._withdrawn:
            self._hear(turn.run_id)
            return
        known = chat.requests.get(turn.request_id)
        if known is not None and known.run_id != turn.run_id and known.run_id in self._unheard:
            chat.dequeue(known.run_id)
            self._instead[known.run_id] = turn
            self._hear(known.run_id)
        elif known is not None:
            self._hear(turn.run_id)
            return
        chat.remember(turn)
        self._chats[turn.run_id] = chat
        if sent.instead_of:
            self._replaces[turn.run_id] = sent.instead_of
        # Where the journal has it: before what was sent here and is not in the journal yet.
        unheard = (at for at, each in enumerate(chat.queue) if each.run_id in self._unheard)
        chat.enqueue(turn, at=next(unheard, None))

    def _hear(self, run_id: str) -> None:
        heard = self._unheard.pop(run_id, None)
        if heard is not None and not heard.done():
            heard.set_result(None)

    def _decide(self, chat: Chat, kind: type[Entry], run_id: str) -> None:
        decided = self._decided.get((kind, run_id))
        if decided is not None and not decided.done():
            decided.set_result(run_id not in chat.runs)

    def _take_begun(self, chat: Chat, begun: TurnBegun) -> None:
        turn = begun.turn
        self._decide(chat, TurnBegun, turn.run_id)
        if is_void(chat, begun):
            return
        self._replaces.pop(turn.run_id, None)
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
        self._own.add(turn.run_id)
        self._journal.write(chat, TurnBegun(turn, at, instead_of or "", retold))


def is_void(chat: Chat, entry: Entry) -> bool:
    """Whether a run begins whose message was taken back before, as the journal has it: so it does
    not, on any server."""
    return isinstance(entry, TurnBegun) and entry.turn.run_id in chat.runs
