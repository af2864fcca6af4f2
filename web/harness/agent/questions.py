"""The questions that a run has put to a person, each answered once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_args

from web.harness.tools.registry import ToolRegistry
from web.harness.tools.words import shown
from web.harness.values.errors import DecisionRefused, HarnessError, ToolError
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


Approver = Callable[[ApprovalRequired], Awaitable[Answer | Decision] | Answer | Decision]
"""Answers a question in the name of a person, with an `Answer` or its decision alone.

A coroutine function runs in the event loop, any other in a thread. Whatever else it gives, or
raises, refuses the call.
"""

DECISIONS: tuple[Decision, ...] = get_args(Decision)


async def refuse_all(question: ApprovalRequired) -> Answer:
    """The approver of those who have nobody to ask."""
    return Answer("deny", reason="There is nobody to ask.")


def as_answer(given: Any) -> Answer:
    """What an approver gave, as an answer. Raises DecisionRefused for what is none."""
    answer = given if isinstance(given, Answer) else Answer(given)
    check_decision(answer.decision)
    return answer


def check_decision(decision: object) -> None:
    """Raises DecisionRefused for anything but the three decisions that there are."""
    if not isinstance(decision, str) or decision not in DECISIONS:
        raise DecisionRefused(
            f"{shown(decision)} is no decision.",
            hint=f"Say one of {', '.join(DECISIONS)}. Nothing ran; the question is still open.",
        )


def once_only(name: str) -> DecisionRefused:
    """Why a tool that always asks cannot be allowed for the calls to come."""
    return DecisionRefused(
        f"{name} asks before each call; it cannot be allowed for the whole chat.",
        hint="The question is still open. Allow this call alone, or deny it.",
    )


def check_edited(tools: ToolRegistry, name: str, arguments: JsonObject) -> JsonObject:
    """The arguments that a person edited, as far as their tool is known here.

    Raises DecisionRefused (`invalid_arguments`) for what does not fit it.
    """
    try:
        if name in tools:
            tools.validate(name, arguments)
    except ToolError as error:
        raise unfit(error) from error
    return arguments


def unfit(error: HarnessError) -> DecisionRefused:
    return DecisionRefused(
        f"The edited arguments do not fit: {error.message}",
        hint="The question is still open.",
        code="invalid_arguments",
    )


class Questions:
    """Open and answered questions of one run."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}
        self._answered: dict[str, Answer] = {}

    def ask(self, call: ToolUseBlock, resumes: int = 0) -> OpenQuestion:
        """`resumes` is how often another process has gone on with the run."""
        return self.reopen(question_key(call, resumes), call)

    def reopen(self, key: str, call: ToolUseBlock) -> OpenQuestion:
        question = self._open[key] = OpenQuestion(key, call)
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


def question_key(call: ToolUseBlock, resumes: int = 0) -> str:
    """`CALLID-DIGEST`: another call, or other arguments, have another key.

    So has the same call of an answer that was asked for anew, after a process ended: whatever a
    person said to the first is not taken for an answer to the second.
    """
    told = [call.name, call.arguments, *([resumes] if resumes else [])]
    text = json.dumps(told, sort_keys=True, ensure_ascii=True)
    return f"{call.id}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
