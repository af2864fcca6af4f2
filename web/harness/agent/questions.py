"""The questions that a run has put to a person, each answered once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from web.harness.values.errors import DecisionRefused
from web.harness.values.events import ApprovalRequired, Decision
from web.harness.values.messages import JsonObject, ToolUseBlock


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """May this call run? The key is bound to the call and to its exact arguments."""

    key: str
    call: ToolUseBlock


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said. `arguments` are the edited ones, None where they were left alone."""

    decision: Decision
    arguments: JsonObject | None = None
    reason: str = ""


Approver = Callable[[ApprovalRequired], Awaitable[Answer]]
"""Answers a question in the name of a person."""


class Questions:
    """Open and answered questions of one run."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}
        self._answered: dict[str, Answer] = {}

    def ask(self, call: ToolUseBlock) -> OpenQuestion:
        question = OpenQuestion(question_key(call), call)
        self._open[question.key] = question
        return question

    def find(self, key: str) -> OpenQuestion:
        """The open question of that key. Raises DecisionRefused, with the reason, without one."""
        if key in self._answered:
            raise DecisionRefused(
                "This question was answered already.", hint="Nothing was changed."
            )
        try:
            return self._open[key]
        except KeyError:
            raise DecisionRefused(
                "This question is not open.",
                hint="The run has gone on or was stopped. Nothing was changed.",
            ) from None

    def answer(self, key: str, answer: Answer) -> OpenQuestion:
        question = self.find(key)
        del self._open[key]
        self._answered[key] = answer
        return question

    def close(self) -> None:
        """No question can be answered any more."""
        self._open.clear()

    @property
    def open(self) -> list[OpenQuestion]:
        return list(self._open.values())


def question_key(call: ToolUseBlock) -> str:
    """`CALLID-DIGEST`: another call, or other arguments, have another key."""
    text = json.dumps([call.name, call.arguments], sort_keys=True, ensure_ascii=True)
    return f"{call.id}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
