"""The journal of a chat: what befalls it beside the events of its runs, in the order it happens.

With a durable event log it is a run of its own in there, of notes, and so it outlives the process
and is read by other servers. In memory an entry takes effect at once and is kept nowhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol, assert_never, get_args

from web.chats.chat import Chat, Turn
from web.chats.records.block_forms import (
    block_from_json,
    block_to_json,
    blocks_from_json,
    blocks_to_json,
)
from web.harness.sessions.event_log import EventLog
from web.harness.values.errors import StoreError
from web.harness.values.events import Decision, EventBody, InputAction, Note
from web.harness.values.json_form import Fields, JsonRefused
from web.harness.values.messages import AttachedBlock, JsonObject

_PREFIX = "journal-of-"

FLUSH_SECONDS = 2.0
"""A person waits no longer for a store that does not work."""


@dataclass(frozen=True, slots=True)
class TurnSent:
    """A message was taken; until its turn begins, it waits. It may be one that is tried again, in
    the place of an earlier run."""

    turn: Turn
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class TurnBegun:
    """A run begins at `at` seconds since the epoch, perhaps in the place of an earlier one.

    One that is `retold` began elsewhere: how long it took is not known.
    """

    turn: Turn
    at: float
    instead_of: str = ""
    retold: bool = False


@dataclass(frozen=True, slots=True)
class TurnTakenBack:
    """A message that waited does not any more. One that was `unsent` could not be stored in time:
    whoever sent it was told so, and may send it again under the same request id."""

    run_id: str
    unsent: bool = False


@dataclass(frozen=True, slots=True)
class Attached:
    """Something was attached to the next message; the chat's record says what still is."""

    id: str
    block: AttachedBlock


@dataclass(frozen=True, slots=True)
class SpentBefore:
    """What was used up before the first run of the journal."""

    spent: JsonObject


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A person asks the server that runs it to stop a run."""

    run_id: str


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """A person answered a question of a run that another server has."""

    run_id: str
    key: str
    decision: Decision
    arguments: JsonObject | None
    reason: str


@dataclass(frozen=True, slots=True)
class InputGiven:
    """A person answered what a tool of such a run asks for."""

    run_id: str
    key: str
    action: InputAction
    content: JsonObject | None


Request = StopAsked | AnswerGiven | InputGiven
"""What one server asks of another. It is nothing to a chat that is loaded later."""

Entry = TurnSent | TurnBegun | TurnTakenBack | Attached | SpentBefore | Request


class Journal(Protocol):
    """Takes entries of chats in order. `durable` says whether they outlive the process; then an
    entry takes effect once it is written, as the event log tells its listener."""

    durable: bool

    def write(self, chat: Chat, entry: Entry) -> None: ...

    def withdraw(self, chat: Chat, sent: TurnSent) -> None:
        """Has a message that is not written yet never have been sent."""
        ...

    async def flush(self, chat: Chat) -> None:
        """Returns when what was written is kept, or when that fails for now."""
        ...

    async def forget(self, chat: Chat) -> None: ...


class DirectJournal:
    """The `Journal` of chats in memory."""

    durable = False

    def __init__(self, take: Callable[[Chat, Entry], None]) -> None:
        self._take = take

    def write(self, chat: Chat, entry: Entry) -> None:
        self._take(chat, entry)

    def withdraw(self, chat: Chat, sent: TurnSent) -> None:
        """What is kept nowhere cannot fail to be."""

    async def flush(self, chat: Chat) -> None:
        """Nothing to wait for."""

    async def forget(self, chat: Chat) -> None:
        """Nothing was kept."""


class WaitingLog(EventLog, Protocol):
    """An event log in which events wait until they are written."""

    def replace_waiting(self, run_id: str, body: EventBody, by: EventBody) -> None:
        """Has one that waits say something else, as far as it still waits."""
        ...


class LoggedJournal:
    """The `Journal` in a durable event log."""

    durable = True

    def __init__(self, events: WaitingLog) -> None:
        self._events = events

    def write(self, chat: Chat, entry: Entry) -> None:
        self._events.append(journal_of(chat.id), [entry_to_event(entry)])

    def withdraw(self, chat: Chat, sent: TurnSent) -> None:
        refused = TurnTakenBack(sent.turn.run_id, unsent=True)
        # Whoever dies before both are written has sent nothing.
        self._events.replace_waiting(
            journal_of(chat.id), entry_to_event(sent), entry_to_event(refused)
        )
        # It may be on its way, and is found again only together with this one.
        self.write(chat, refused)

    async def flush(self, chat: Chat) -> None:
        # What fails waits in the log, which goes on trying; the page says so.
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._events.flush(journal_of(chat.id))

    async def forget(self, chat: Chat) -> None:
        await self._events.forget(journal_of(chat.id))


def journal_of(chat_id: str) -> str:
    """The id under which the event log has the journal of a chat."""
    return _PREFIX + chat_id


def is_journal(run_id: str) -> bool:
    return run_id.startswith(_PREFIX)


def entry_to_event(entry: Entry) -> EventBody:
    return Note(_kind(entry), json.dumps(_form(entry), separators=(",", ":")))


def entry_from_event(body: EventBody) -> Entry | None:
    """An entry, or None for one that a later version wrote. Raises JsonRefused."""
    if not isinstance(body, Note):
        return None
    try:
        fields = Fields(json.loads(body.detail), f"the entry {body.text}")
    except ValueError:
        raise JsonRefused("An entry of a journal is no JSON.") from None
    match body.text:
        case "sent":
            return TurnSent(_turn(fields.take("turn")), fields.text("instead_of", ""))
        case "begun":
            at = fields.number_or_none("at") or 0.0
            turn = _turn(fields.take("turn"))
            return TurnBegun(turn, at, fields.text("instead_of", ""), fields.flag("retold", False))
        case "taken_back":
            return TurnTakenBack(fields.text("run_id"), fields.flag("unsent", False))
        case "attached":
            return Attached(fields.text("id"), block_from_json(fields.take("block")))
        case "spent":
            return SpentBefore(fields.mapping("spent"))
        case "stop":
            return StopAsked(fields.text("run_id"))
        case "answer":
            return AnswerGiven(
                fields.text("run_id"),
                fields.text("key"),
                _one_of(get_args(Decision), fields.text("decision")),
                _object(fields, "arguments"),
                fields.text("reason", ""),
            )
        case "input":
            return InputGiven(
                fields.text("run_id"),
                fields.text("key"),
                _one_of(get_args(InputAction), fields.text("action")),
                _object(fields, "content"),
            )
    return None


def _one_of(choices: tuple[Any, ...], text: str) -> Any:
    if text not in choices:
        raise JsonRefused(f"'{text[:40]}' is no answer.")
    return text


def _object(fields: Fields, name: str) -> JsonObject | None:
    value = fields.take(name)
    if value is not None and not isinstance(value, dict):
        raise JsonRefused(f"{fields.name(name)} is no object.")
    return value


def _kind(entry: Entry) -> str:
    match entry:
        case TurnSent():
            return "sent"
        case TurnBegun():
            return "begun"
        case TurnTakenBack():
            return "taken_back"
        case Attached():
            return "attached"
        case SpentBefore():
            return "spent"
        case StopAsked():
            return "stop"
        case AnswerGiven():
            return "answer"
        case InputGiven():
            return "input"
        case _:
            assert_never(entry)


def _form(entry: Entry) -> JsonObject:
    match entry:
        case TurnSent():
            instead = {"instead_of": entry.instead_of} if entry.instead_of else {}
            return {"turn": _turn_form(entry.turn), **instead}
        case TurnBegun():
            return {
                "turn": _turn_form(entry.turn),
                "at": entry.at,
                "instead_of": entry.instead_of,
                "retold": entry.retold,
            }
        case TurnTakenBack():
            return {"run_id": entry.run_id, **({"unsent": True} if entry.unsent else {})}
        case Attached():
            return {"id": entry.id, "block": block_to_json(entry.block)}
        case SpentBefore():
            return {"spent": entry.spent}
        case StopAsked() | AnswerGiven() | InputGiven():
            return asdict(entry)
        case _:
            assert_never(entry)


def _turn_form(turn: Turn) -> JsonObject:
    return {
        "run_id": turn.run_id,
        "text": turn.text,
        "model": turn.model,
        "request_id": turn.request_id,
        "attachments": blocks_to_json(turn.attachments),
        **({"took": list(turn.took)} if turn.took else {}),
        **({"draft": turn.draft} if turn.draft else {}),
        **({"at": turn.at} if turn.at else {}),
    }


def _turn(form: Any) -> Turn:
    fields = Fields(form, "turn")
    return Turn(
        fields.text("run_id"),
        fields.text("text"),
        fields.text("model"),
        fields.text("request_id"),
        blocks_from_json(fields.items("attachments", [])),
        tuple(map(str, fields.items("took", []))),
        fields.text("draft", ""),
        fields.number_or_none("at") or 0.0,
    )
