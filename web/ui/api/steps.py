"""The JSON API of runs that are written down: their steps, and going on with them."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from starlette.responses import Response

from web.chats.chat import Chat
from web.chats.runs.run_control import MAX_RECOVERY_CHARS
from web.chats.steps.shown_steps import shown_steps
from web.harness.sessions.journal import StepKind
from web.harness.values.errors import HarnessError
from web.harness.values.events import Resolution
from web.ui.api.operations import Call, Operation, Query
from web.ui.api.shapes import Asked, ChatMade, Nothing, RequestId, Told, UsageTold
from web.ui.runs.run_forms import forking, resolve
from web.ui.runs.run_pages import exported
from web.ui.snapshot_forms import opened_run

MOST_STEPS = 1_000
FEW_STEPS = 100


class RecoveryAnswer(Asked):
    how: Resolution = Field(
        description="`result`: it ran, and gave `text`; `retry`: run it again; `abort`: give up."
    )
    text: str = Field("", max_length=MAX_RECOVERY_CHARS)


class Fork(Asked):
    step: int = Field(ge=1, description="Number of an answer of the model, or a round of tools.")
    request_id: RequestId | None = Field(None, description="The same id again: the same chat.")


class StepCallTold(Told):
    call_id: str
    name: str
    arguments: dict[str, Any] | None = Field(description="Those that it ran with.")
    malformed: str = Field(description="What the model sent where it was no JSON object.")
    replay: str = Field(description="What happens if it is cut off: safe, idempotent, manual.")
    refusal: str = Field(description="Why it did not run.")
    decision: str
    edited: bool
    asks: dict[str, Any] | None = Field(description="What it asked a person for.")
    result: str | None
    is_error: bool
    pictures: int
    seconds: float | None


class StepTold(Told):
    """One step of a run, whole. Fields that say nothing of its kind are empty."""

    number: int
    at: float = Field(description="Seconds since the epoch.")
    kind: StepKind
    cursor: int = Field(description="Number of the last event before it.")
    model: str
    seconds: float | None
    usage: UsageTold | None
    cost: float | None = Field(description="US dollars.")
    roles: tuple[str, ...] = Field(description="Of the messages that it added.")
    text: str
    thinking: str
    attachments: tuple[str, ...]
    calls: tuple[StepCallTold, ...]
    how: str = Field(description="Its outcome in one word: why the model stopped, an error's code.")
    words: str
    wait: float | None
    about: dict[str, Any]
    forks: bool = Field(description="Whether a chat can be begun from it.")


class StepsTold(Told):
    steps: tuple[StepTold, ...]
    more: bool = Field(description="Whether others follow: ask after the last of these.")


class OpenedRun(Told):
    id: str = Field(description="It can be looked at for a while: /opened-runs/{id} has its page.")
    run_id: str
    title: str
    steps: int


async def get_steps(call: Call[Nothing]) -> StepsTold:
    chat, run_id = _of_run(call)
    after, limit = _number(call, "after", 0), min(_number(call, "limit", FEW_STEPS), MOST_STEPS)
    read = await call.services.runs.steps(chat, run_id, after, limit + 1)
    steps = shown_steps(read[:limit], {})
    return StepsTold(steps=tuple(map(StepTold.model_validate, steps)), more=len(read) > limit)


async def export_run(call: Call[Nothing]) -> Response:
    return await exported(call.services, *_of_run(call))


async def fork_run(call: Call[Fork]) -> ChatMade:
    chat, run_id = _of_run(call)
    made = await forking(call.services).fork(
        chat, run_id, call.body.step, request_id=call.body.request_id or ""
    )
    return ChatMade(id=made.id, title=made.title, model=made.record.model)


async def resume_run(call: Call[Nothing]) -> None:
    await call.services.runs.resume(*_of_run(call))


async def leave_run(call: Call[Nothing]) -> None:
    await call.services.runs.leave(*_of_run(call))


async def pause_run(call: Call[Nothing]) -> None:
    await call.services.runs.pause(*_of_run(call))


async def answer_recovery(call: Call[RecoveryAnswer]) -> None:
    chat, run_id = _of_run(call)
    asked = call.body
    await resolve(call.services, chat, call.path["key"], asked.how, asked.text, run_id=run_id)


async def open_run(call: Call[Nothing]) -> OpenedRun:
    if not call.request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HarnessError(
            "The content has to be a form with a file.",
            hint="Send multipart/form-data with a part `file`.",
            code="unsupported_media_type",
        )
    opened_id = await opened_run(call.services, call.request, call.identity)
    run = call.services.opened_runs.get(call.identity, opened_id)
    return OpenedRun(id=opened_id, run_id=run.run_id, title=run.title, steps=len(run.steps))


async def get_opened_steps(call: Call[Nothing]) -> StepsTold:
    run = call.services.opened_runs.get(call.identity, call.path["opened_id"])
    after, limit = _number(call, "after", 0), min(_number(call, "limit", FEW_STEPS), MOST_STEPS)
    steps = [step for step in run.steps if step.number > after]
    told = tuple(map(StepTold.model_validate, steps[:limit]))
    return StepsTold(steps=told, more=len(steps) > limit)


_AFTER = Query("after", "Number of the last step that the reader has; 0 for all.", "^[0-9]{1,9}$")
_LIMIT = Query("limit", f"At most so many, up to {MOST_STEPS}.", "^[0-9]{1,9}$")
_STANDING = ("not_found", "not_written_down", "run_ended", "session_conflict", "runtime_differs")

STEP_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/api/runs/{run_id}/steps",
        "What a run did, step by step, with times and cost; none where it is not written down",
        get_steps,
        Nothing,
        StepsTold,
        refusals=("not_found", "invalid_request"),
        query=(_AFTER, _LIMIT),
    ),
    Operation(
        "GET",
        "/api/runs/{run_id}/export",
        "A run with its steps as one file, without what looks like a secret",
        export_run,
        Nothing,
        refusals=("not_found", "too_large"),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/fork",
        "A new chat that goes on from a step of a run, with its files as they were then",
        fork_run,
        Fork,
        ChatMade,
        201,
        ("not_found", "invalid_arguments", "limit_exceeded"),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/resume",
        "Go on with a run that was cut off or paused",
        resume_run,
        Nothing,
        status=202,
        refusals=_STANDING,
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/leave",
        "End a run that was cut off or paused as it is",
        leave_run,
        Nothing,
        status=202,
        refusals=_STANDING,
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/pause",
        "Have a run stop before its next step",
        pause_run,
        Nothing,
        status=202,
        refusals=("not_found", "not_written_down", "run_ended", "session_conflict"),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/recoveries/{key}",
        "Answer a `recovery_required`, once",
        answer_recovery,
        RecoveryAnswer,
        status=202,
        refusals=("not_found", "decision_refused"),
    ),
    Operation(
        "POST",
        "/api/opened-runs",
        "Open the file of a run, to look at it; it needs no key and changes nothing",
        open_run,
        Nothing,
        OpenedRun,
        201,
        (
            "bad_request",
            "invalid_arguments",
            "unsupported_media_type",
            "run_file_refused",
            "from_the_future",
            "too_large",
            "limit_exceeded",
        ),
        form={
            "file": {
                "type": "string",
                "format": "binary",
                "description": "A run as it was exported.",
            }
        },
    ),
    Operation(
        "GET",
        "/api/opened-runs/{opened_id}/steps",
        "The steps of a run that was opened from a file",
        get_opened_steps,
        Nothing,
        StepsTold,
        refusals=("not_found", "invalid_request"),
        query=(_AFTER, _LIMIT),
    ),
)


def _of_run(call: Call[Any]) -> tuple[Chat, str]:
    run_id = call.path["run_id"]
    return call.services.chats.run(call.identity, run_id), run_id


def _number(call: Call[Any], name: str, default: int) -> int:
    """A number in the address. Raises HarnessError (`invalid_request`)."""
    given = call.request.query_params.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > 9:
        raise HarnessError(
            f"`{name}` has to be a whole number.",
            hint="Send the number of the last step you have, or 0 to get all.",
            code="invalid_request",
        )
    return int(given)
