"""What a reader of a run has seen over all its connections, counted and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

JOINED = ("text_delta", "thinking_delta", "tool_call_delta", "tool_progress")
"""What is joined once the run has ended: a joined one has the last number that it holds."""


class Shown(NamedTuple):
    """One event as a program gets it."""

    number: int
    type: str
    data: dict[str, Any]


@dataclass(slots=True)
class Call:
    """A call of a tool, by what was told of it."""

    name: str
    starts: int = 0
    progress: str = ""
    result: str | None = None
    failed: bool = False


class Seen:
    """Takes the events of a run in the order in which they come.

    `texts` are those of the messages, by their ids, less what was taken back. `faults` are words on
    what should not be: a number that is missing, or there twice.
    """

    def __init__(self) -> None:
        self.events: list[Shown] = []
        self.texts: dict[str, str] = {}
        self.calls: dict[str, Call] = {}
        self.questions: dict[str, str] = {}
        """The calls that a person is asked about, by the key of the question."""
        self.taken_back = 0
        """Words, in all."""
        self.retries = 0
        self.result: dict[str, Any] | None = None
        self.faults: list[str] = []

    @property
    def last(self) -> int:
        return self.events[-1].number if self.events else 0

    @property
    def words(self) -> int:
        return sum(len(text.split()) for text in self.texts.values())

    def take(self, event: Shown) -> None:
        number, kind, data = event
        if kind == "gap":
            self.faults.append(f"events after {data['after']} are no longer kept")
            return
        if number <= self.last:
            self.faults.append(f"event {number} came again after event {self.last}")
        elif number > self.last + 1 and kind not in JOINED:
            self.faults.append(f"there is no event between {self.last} and {number}")
        self.events.append(event)
        match kind:
            case "text_delta":
                before = self.texts.get(data["message_id"], "")
                self.texts[data["message_id"]] = before + data["text"]
            case "attempt_reset":
                self.taken_back += len(self.texts.pop(data["message_id"], "").split())
            case "tool_call_start":
                self._call(data).starts += 1
            case "tool_progress":
                self.calls[data["call_id"]].progress = data["message"]
            case "tool_result":
                call = self._call(data)
                call.result, call.failed = data["text"], bool(data["is_error"])
            case "recovery_required":
                self._call(data)
                self.questions[data["key"]] = data["call_id"]
            case "recovery_answered":
                self.questions.pop(data["key"], None)
                self.retries += data["how"] == "retry"
            case "run_result":
                self.result = data

    def call(self, name: str) -> Call:
        """The call of a tool, one that has done nothing where there is none yet."""
        return next((each for each in self.calls.values() if each.name == name), Call(name))

    def differs(self, again: Sequence[Shown]) -> str:
        """What is not as it was when the same events are read once more, in words.

        A run that has ended meanwhile has its deltas joined: then the others are compared.
        """
        shown, now = self.events, [each for each in again if each.number <= self.last]
        if len(now) < len(shown):
            shown, now = _whole(shown), _whole(now)
        for old, new in zip(shown, now, strict=False):
            if old != new:
                return f"event {old.number} is another one now"
        missing = len(shown) - len(now)
        return f"{missing} events that were shown are gone" if missing > 0 else ""

    def _call(self, data: dict[str, Any]) -> Call:
        return self.calls.setdefault(data["call_id"], Call(data["name"]))


def _whole(events: Sequence[Shown]) -> list[Shown]:
    return [each for each in events if each.type not in JOINED]
