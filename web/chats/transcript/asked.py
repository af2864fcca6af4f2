"""What a person was asked in one chat, whole: to be seen before the answer, and after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from web.chats.parts.channel import Channel
from web.chats.parts.halted_kinds import Recovery
from web.chats.parts.kinds import Call
from web.chats.parts.listed_calls import all_calls
from web.harness.tools.previews import preview_chars
from web.harness.values.events import ApprovalRequired

MAX_QUESTIONS = 1_000
MAX_KEPT_CHARS = 8 * 1024 * 1024
"""Of all previews; beyond it the oldest are dropped. One of the largest always has room."""

QuestionState = Literal["open", "allowed", "denied", "stopped", "unknown"]
"""`unknown`: it is not asked whether it may run, but whether it did."""


class AskedQuestions:
    """The questions of one chat, by their keys. Arguments are those that the call holds anyway."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ApprovalRequired] = OrderedDict()
        self._cut: set[str] = set()
        self._chars = 0

    def keep(self, question: ApprovalRequired) -> None:
        before = self._kept.pop(question.key, None)
        self._chars += _size(question) - (_size(before) if before is not None else 0)
        self._kept[question.key] = question
        while len(self._kept) > MAX_QUESTIONS:
            key, oldest = self._kept.popitem(last=False)
            self._chars -= _size(oldest)
            self._cut.discard(key)
        for key, each in list(self._kept.items()):
            if self._chars <= MAX_KEPT_CHARS:
                break
            if each.preview is not None:
                self._chars -= _size(each)
                self._kept[key] = replace(each, preview=None)
                self._cut.add(key)

    def keep_shown(self, question: ApprovalRequired) -> None:
        """Keeps a question of which only what the card shows is left."""
        self.keep(question)
        if question.preview is not None and question.preview.get("more"):
            self._cut.add(question.key)

    def get(self, key: str) -> ApprovalRequired | None:
        """The question with its whole preview, or without one that is not kept any more."""
        return self._kept.get(key)

    def is_whole(self, key: str) -> bool:
        """Whether the preview of a question is kept as it was put."""
        return key not in self._cut


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what became of it, and its call as it is now.

    `whole` is False where of the preview only what the card showed is left, or nothing.
    """

    question: ApprovalRequired
    call: Call
    state: QuestionState
    whole: bool

    @property
    def left_out(self) -> int:
        """How many characters of the preview were too many to be kept."""
        return int((self.question.preview or {}).get("left_out", 0))


def find_asked(channel: Channel, asked: AskedQuestions, key: str) -> Asked | None:
    """The question of this key; None for one that was never put here, or so long ago."""
    if (uncertain := find_uncertain(channel, key)) is not None:
        return _of_uncertain(key, uncertain)
    question = asked.get(key)
    call_id = question.call_id if question is not None else key.rpartition("-")[0]
    part = channel.get(f"c-{call_id}")
    call = part.data if part is not None and isinstance(part.data, Call) else None
    if question is None or call is None:
        return None
    whole = asked.is_whole(key)
    shown = call.question if call.question is not None and call.question.key == key else None
    if not whole and shown is not None:
        question = replace(question, preview=shown.preview)
    return Asked(question, call, _state(call, is_open=shown is not None), whole)


def uncertain_calls(channel: Channel) -> Iterator[tuple[Call, Recovery]]:
    """The calls of a chat of which a person has to say whether they ran."""
    for call in all_calls(channel):
        if call.recovery is not None:
            yield call, call.recovery


def find_uncertain(channel: Channel, key: str) -> Call | None:
    """The call that this key asks about; None where that is not open."""
    return next((call for call, asked in uncertain_calls(channel) if asked.key == key), None)


def _of_uncertain(key: str, call: Call) -> Asked:
    question = ApprovalRequired(key, call.call_id, call.name, call.arguments or {}, "")
    return Asked(question, call, "unknown", True)


def _state(call: Call, *, is_open: bool) -> QuestionState:
    if is_open:
        return "open"
    if call.decision is None:
        return "stopped"
    return "denied" if call.decision == "deny" else "allowed"


def _size(question: ApprovalRequired) -> int:
    return preview_chars(question.preview) if question.preview is not None else 0
