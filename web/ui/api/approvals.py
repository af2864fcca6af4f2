"""The JSON API of what a person was asked: all of it, open or answered."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from web.chats.transcript.asked import QuestionState, find_asked
from web.harness.values.events import Decision
from web.ui.api.operations import Call, Operation
from web.ui.api.shapes import Nothing, Told
from web.ui.pages.approval_pages import unknown_question


class WholeQuestion(Told):
    """A question to a person with its preview whole; a text in its `lines` may be several lines."""

    key: str
    run_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    preview: dict[str, Any] | None
    whole: bool = Field(description="Whether the preview is all that there was.")
    always_asks: bool
    state: QuestionState
    decision: Decision | None
    edited: bool = Field(description="Whether it ran with other arguments than these.")


async def get_approval(call: Call[Nothing]) -> WholeQuestion:
    chat = call.services.chats.run(call.identity, call.path["run_id"])
    asked = find_asked(chat.channel, chat.asked, call.path["key"])
    if asked is None or asked.call.run_id != call.path["run_id"]:
        raise unknown_question()
    question = asked.question
    return WholeQuestion(
        key=question.key,
        run_id=asked.call.run_id,
        call_id=question.call_id,
        name=question.name,
        arguments=question.arguments,
        preview=question.preview,
        whole=asked.whole and not asked.left_out,
        always_asks=question.always_asks,
        state=asked.state,
        decision=asked.call.decision,
        edited=asked.call.edited,
    )


APPROVAL_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/api/runs/{run_id}/approvals/{key}",
        "All of what an `approval_required` asks, also when it was answered",
        get_approval,
        Nothing,
        WholeQuestion,
        refusals=("not_found",),
    ),
)
