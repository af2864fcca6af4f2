"""The JSON API: chats, messages, runs and their events, for programs."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from pydantic import JsonValue
from sse_starlette.event import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.chat import Chat, Turn
from web.chats.setup import checked_setup
from web.harness.sessions.event_log import EventLog
from web.harness.values.events import RunResult, event_data
from web.ui.api.approvals import APPROVAL_OPERATIONS
from web.ui.api.attachments import NewMessage, taken_in
from web.ui.api.chat_lists import LIST_OPERATION
from web.ui.api.chat_summaries import active_run, summary_of
from web.ui.api.files import FATE, FILE_OPERATIONS, delete_with
from web.ui.api.memory import MEMORY_OPERATIONS
from web.ui.api.open_questions import inputs_of, questions_of, recoveries_of
from web.ui.api.openapi import describe
from web.ui.api.operations import Call, Operation, Query, operation_routes
from web.ui.api.run_events import read_cursor, run_events
from web.ui.api.servers import SERVER_OPERATIONS
from web.ui.api.shapes import (
    ApprovalAnswer,
    ChatChange,
    ChatLimitsTold,
    ChatMessage,
    ChatWhole,
    Health,
    InputReply,
    NewChat,
    Nothing,
    QueuedMessage,
    RunStarted,
    RunState,
    RunStatus,
    UsageTold,
)
from web.ui.api.skills import SKILL_OPERATIONS
from web.ui.api.snapshots import SNAPSHOT_OPERATIONS
from web.ui.api.steps import STEP_OPERATIONS
from web.ui.services import UiServices
from web.ui.stream.event_stream import EventStream, while_known

HEARTBEAT_SECONDS = 15
"""Between comments in a quiet event stream, so that nothing on the way thinks it dead."""


def api_routes(services: UiServices) -> list[Route]:
    """The routes under `/api`, with the document that describes them."""
    document = cache(partial(describe, OPERATIONS, version=services.version))

    # Made when it is first asked for, in a thread: it takes a while.
    def openapi(request: Request) -> Response:
        return Response(document(), media_type="application/json")

    return [*operation_routes(OPERATIONS, services), Route("/api/openapi.json", openapi)]


async def create_chat(call: Call[NewChat]) -> ChatWhole:
    asked = call.body
    chat = await call.services.chats.create(
        call.identity,
        title=asked.title or "",
        model=asked.model or "",
        system_prompt=asked.system_prompt or "",
        request_id=asked.request_id or "",
    )
    return await _whole(call, chat)


async def get_chat(call: Call[Nothing]) -> ChatWhole:
    return await _whole(call, _chat(call))


async def change_chat(call: Call[ChatChange]) -> ChatWhole:
    chat, asked = _chat(call), call.body
    limits = asked.limits.model_dump(exclude_unset=True) if asked.limits is not None else {}
    await call.services.chats.change(
        chat,
        title=asked.title,
        model=asked.model,
        system_prompt=asked.system_prompt,
        setup=checked_setup(limits, chat.record.setup),
    )
    return await _whole(call, chat)


async def delete_chat(call: Call[Nothing]) -> None:
    await delete_with(call.services.chats, _chat(call), call.request.query_params.get("files"))


async def restore_chat(call: Call[Nothing]) -> ChatWhole:
    return await _whole(
        call, await call.services.chats.restore(call.identity, call.path["chat_id"])
    )


async def send_message(call: Call[NewMessage]) -> RunStarted:
    chat, asked = _chat(call), call.body
    turn = await call.services.chats.send(
        chat,
        asked.text,
        request_id=asked.request_id or "",
        queue=asked.queue,
        model=asked.model or "",
        attachments=await taken_in(call.services, chat, asked),
    )
    return _started(chat, turn)


async def get_run(call: Call[Nothing]) -> RunStatus:
    return await _run_status(call, _chat_of_run(call))


async def stream_events(call: Call[Nothing]) -> Response:
    run_id = call.path["run_id"]
    _chat_of_run(call)
    after = read_cursor(
        call.request.query_params.get("after"), call.request.headers.get("last-event-id")
    )
    streams = call.services.open_streams
    streams.check()
    events = run_events(call.services.events, run_id, after, streams)
    return EventStream(
        while_known(call.services, call.request, events),
        ping=HEARTBEAT_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="still here"),
        sep="\n",
    )


async def stop_run(call: Call[Nothing]) -> RunStatus:
    chat = _chat_of_run(call)
    call.services.chats.stop(chat, call.path["run_id"])
    return await _run_status(call, chat)


async def retry_run(call: Call[Nothing]) -> RunStarted:
    chat = _chat_of_run(call)
    return _started(chat, await call.services.chats.retry(chat, call.path["run_id"]))


async def answer_approval(call: Call[ApprovalAnswer]) -> RunStatus:
    chat, asked = _chat_of_run(call), call.body
    await call.services.chats.decide(
        chat,
        call.path["key"],
        asked.decision,
        run_id=call.path["run_id"],
        arguments=asked.arguments,
        reason=asked.reason,
    )
    return await _run_status(call, chat)


async def answer_input(call: Call[InputReply]) -> RunStatus:
    chat, asked = _chat_of_run(call), call.body
    await call.services.chats.answer_input(
        chat, call.path["key"], asked.action, asked.content, run_id=call.path["run_id"]
    )
    return await _run_status(call, chat)


async def health(call: Call[Nothing]) -> Health:
    chats = call.services.chats
    return Health(
        status="ok",
        version=call.services.version,
        epoch=chats.clock.epoch,
        models=chats.models,
        store=call.services.store,
        chats=len(chats.list(call.identity)),
        running=chats.running(call.identity),
    )


_NOT_KEPT = ("store_full", "store_locked", "store_busy", "store_read_only", "store_unavailable")
_SENDING = ("session_conflict", "limit_exceeded", "configuration_error", *_NOT_KEPT)
_AFTER = Query("after", "Number of the last event that the reader has; 0 for all.", "^[0-9]{1,15}$")

OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "POST",
        "/api/chats",
        "Start a chat",
        create_chat,
        NewChat,
        ChatWhole,
        201,
        ("configuration_error", "too_long", "limit_exceeded"),
    ),
    LIST_OPERATION,
    Operation(
        "GET",
        "/api/chats/{chat_id}",
        "A chat with its messages, its queue and its open questions",
        get_chat,
        Nothing,
        ChatWhole,
        refusals=("not_found",),
    ),
    Operation(
        "PATCH",
        "/api/chats/{chat_id}",
        "Rename a chat, or change model, instructions and limits from the next message on",
        change_chat,
        ChatChange,
        ChatWhole,
        refusals=("not_found", "configuration_error", "invalid_arguments", "too_long"),
    ),
    Operation(
        "DELETE",
        "/api/chats/{chat_id}",
        "Delete a chat; what it does is stopped",
        delete_chat,
        Nothing,
        status=204,
        refusals=("not_found", "invalid_request"),
        query=(FATE,),
    ),
    Operation(
        "POST",
        "/api/chats/{chat_id}/restore",
        "Bring a deleted chat back, within some seconds",
        restore_chat,
        Nothing,
        ChatWhole,
        refusals=("not_found",),
    ),
    Operation(
        "POST",
        "/api/chats/{chat_id}/messages",
        "Send a message; a run answers it",
        send_message,
        NewMessage,
        RunStarted,
        202,
        ("not_found", "empty", "too_long", "request_id_reused", "tool_error", *_SENDING),
    ),
    Operation(
        "GET",
        "/api/runs/{run_id}",
        "What a run is at",
        get_run,
        Nothing,
        RunStatus,
        refusals=("not_found",),
    ),
    Operation(
        "GET",
        "/api/runs/{run_id}/events",
        "The events of a run, as they happen, ending after its result",
        stream_events,
        Nothing,
        refusals=("not_found", "bad_cursor", "too_many_streams"),
        query=(_AFTER,),
        media_type="text/event-stream",
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/stop",
        "Stop a run, or take a waiting message back",
        stop_run,
        Nothing,
        RunStatus,
        202,
        ("not_found",),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/retry",
        "Send the last message of a chat once more, after its run failed or was stopped",
        retry_run,
        Nothing,
        RunStarted,
        202,
        ("not_found", *_SENDING),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/approvals/{key}",
        "Answer an `approval_required`, once",
        answer_approval,
        ApprovalAnswer,
        RunStatus,
        refusals=("not_found", "decision_refused", "invalid_arguments"),
    ),
    Operation(
        "POST",
        "/api/runs/{run_id}/inputs/{key}",
        "Answer an `input_required`, once",
        answer_input,
        InputReply,
        RunStatus,
        refusals=("not_found", "decision_refused", "invalid_arguments"),
    ),
    *APPROVAL_OPERATIONS,
    *SERVER_OPERATIONS,
    *FILE_OPERATIONS,
    *SKILL_OPERATIONS,
    *MEMORY_OPERATIONS,
    *SNAPSHOT_OPERATIONS,
    *STEP_OPERATIONS,
    Operation("GET", "/api/health", "Is the server well", health, Nothing, Health),
)


def _chat(call: Call[Any]) -> Chat:
    return call.services.chats.get(call.identity, call.path["chat_id"])


def _chat_of_run(call: Call[Any]) -> Chat:
    return call.services.chats.run(call.identity, call.path["run_id"])


async def _whole(call: Call[Any], chat: Chat) -> ChatWhole:
    # First: whoever reads that nothing is at work any more has all that came of it.
    summary = summary_of(chat)
    messages = await call.services.chats.messages(chat)
    return ChatWhole(
        **summary,
        system_prompt=chat.record.system_prompt,
        limits=ChatLimitsTold.model_validate(chat.record.setup),
        turns=chat.spending.turns,
        usage=UsageTold.model_validate(chat.spending.totals.usage),
        cost=chat.spending.totals.cost,
        messages=tuple(map(ChatMessage.model_validate, messages)),
        queue=tuple(map(QueuedMessage.model_validate, chat.queue)),
        questions=questions_of(chat),
        inputs=inputs_of(chat),
        recoveries=recoveries_of(chat),
    )


def _started(chat: Chat, turn: Turn) -> RunStarted:
    return RunStarted(run_id=turn.run_id, queued=turn in chat.queue)


async def _run_status(call: Call[Any], chat: Chat) -> RunStatus:
    run_id = call.path["run_id"]
    state = _run_state(chat, run_id)
    result = await _result(call.services.events, run_id) if state == "ended" else None
    waits_for = chat.transcript.missing(run_id) or None
    return RunStatus(
        run_id=run_id, chat_id=chat.id, state=state, waits_for=waits_for, result=result
    )


def _run_state(chat: Chat, run_id: str) -> RunState:
    if any(turn.run_id == run_id for turn in chat.queue):
        return "queued"
    if run_id in chat.transcript.halted:
        return "paused"
    if active_run(chat) != run_id:
        return "ended"
    return "asking" if chat.state == "asking" else "running"


async def _result(events: EventLog, run_id: str) -> dict[str, JsonValue] | None:
    """The data of a run's last event, its result."""
    last = None
    while (page := await events.read(run_id, last.number if last else 0)).events:
        last = page.events[-1]
    return event_data(last.body) if last is not None and isinstance(last.body, RunResult) else None
