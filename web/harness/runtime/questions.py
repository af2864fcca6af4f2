"""What a run waits for a person for, found in its events: by any process, at any time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from web.harness.sessions.event_log import EventLog
from web.harness.sessions.journal import Executions, GivenAnswer
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    RecoveryAnswered,
    RecoveryRequired,
    RunResult,
    ToolCallStart,
    ToolResult,
)

Question = ApprovalRequired | InputRequired | RecoveryRequired
"""May this call run; what a tool asks for; did this call run."""

STEPS_AT_ONCE = 8
"""An answer with a few calls and what came of them, whose results may be large."""

EVENTS_AT_ONCE = 1_000


async def open_questions(
    executions: Executions, events: EventLog, run_id: str
) -> tuple[Question, ...]:
    """The questions of a run that nobody has answered, in the order they were put."""
    found = Unanswered()
    cursor = await _answer_began(executions, run_id)
    while page := (await events.read(run_id, cursor, EVENTS_AT_ONCE)).events:
        found.take(page)
        cursor = page[-1].number
    found.answered(await executions.answers(run_id))
    return found.questions


async def _answer_began(executions: Executions, run_id: str) -> int:
    """The cursor from before the newest model call: what was asked earlier is over."""
    execution = await executions.find(run_id)
    upto = execution.steps if execution is not None else 0
    while upto > 0:
        start = max(upto - STEPS_AT_ONCE, 0)
        for step in reversed(await executions.steps(run_id, start, upto - start)):
            if step.step.kind == "model_call":
                return step.cursor
        upto = start
    return 0


class Unanswered:
    """Folds events of a run to the questions that are open after them."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Question, tuple[str, ...]]] = {}

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for question, _ in self._open.values())

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            body: EventBody = event.body
            path: tuple[str, ...] = ()
            while isinstance(body, NestedEvent):
                path, body = (*path, body.call_id), body.body
            match body:
                case ApprovalRequired() | InputRequired():
                    self._open[body.key] = body, path
                case RecoveryRequired():
                    # What it asked before it was cut off, nobody waits for any more.
                    self._end_within(body.call_id, keep_inputs=False)
                    self._open[body.key] = body, path
                case InputAnswered() | RecoveryAnswered():
                    self._open.pop(body.key, None)
                case ToolCallStart():
                    self._end_within(body.call_id, keep_inputs=True)
                case ToolResult():
                    self._end_within(body.call_id, keep_inputs=False)
                case AttemptReset():
                    self._taken_back(body.message_id)
                case RunResult() if not path:
                    self._open.clear()
                case _:
                    pass

    def answered(self, answers: Sequence[GivenAnswer]) -> None:
        for answer in answers:
            self._open.pop(answer.key, None)

    def _end_within(self, call_id: str, *, keep_inputs: bool) -> None:
        """Ends what was asked of a call and within it."""
        for key, (question, path) in tuple(self._open.items()):
            of_call = question.call_id == call_id
            if call_id in path or (of_call and not (keep_inputs and _is_input(question))):
                del self._open[key]

    def _taken_back(self, message_id: str) -> None:
        for key, (question, _) in tuple(self._open.items()):
            if isinstance(question, ApprovalRequired) and question.message_id == message_id:
                del self._open[key]


def _is_input(question: Question) -> bool:
    match question:
        case InputRequired():
            return True
        case ApprovalRequired() | RecoveryRequired():
            return False
        case _:
            assert_never(question)
