"""What a person does with a run that is written down: goes on, leaves it, pauses it, says what
became of a call, and begins a chat from one of its steps. Each works without script too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.records.chat_limits import check_request_id
from web.chats.runs.run_control import MAX_RECOVERY_CHARS
from web.chats.runs.turns import no_such_run
from web.chats.snapshots.forking import Forking
from web.chats.transcript.asked import find_uncertain
from web.harness.values.errors import DecisionRefused, HarnessError, LimitExceeded
from web.harness.values.events import Resolution
from web.ui.form_data import Fields
from web.ui.pages.forms import leave, of_a_chat, stay
from web.ui.services import UiServices


def run_form_routes(services: UiServices) -> list[Route]:
    async def recover(chat: Chat, fields: Fields, request: Request) -> Response:
        given = fields.get("how", "")
        how = next((each for each in get_args(Resolution) if each == given), None)
        if how is None:
            raise HarnessError("There is no such answer.", code="invalid_arguments")
        text = fields.get("text", "") if how == "result" else ""
        await resolve(services, chat, request.path_params["key"], how, text)
        return stay(request, chat)

    def deed(
        do: Callable[[Chat, str], Awaitable[None]],
    ) -> Callable[[Chat, Fields, Request], Awaitable[Response]]:
        async def handle(chat: Chat, fields: Fields, request: Request) -> Response:
            await do(chat, run_of(services, request, chat))
            return stay(request, chat)

        return handle

    async def fork(chat: Chat, fields: Fields, request: Request) -> Response:
        run_id, step = run_of(services, request, chat), fields.get("step", "")
        request_id = fields.get("request_id", "")
        check_request_id(request_id)
        if not step.isdecimal() or len(step) > 9:
            raise HarnessError("Choose a step by its number.", code="invalid_arguments")
        made = await forking(services).fork(chat, run_id, int(step), request_id=request_id)
        return leave(request, f"/chats/{made.id}")

    runs = services.runs
    return [
        Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
        for path, handler in (
            ("recoveries/{key}", recover),
            ("runs/{run_id}/resume", deed(runs.resume)),
            ("runs/{run_id}/leave", deed(runs.leave)),
            ("runs/{run_id}/pause", deed(runs.pause)),
            ("runs/{run_id}/fork", fork),
        )
    ]


def run_of(services: UiServices, request: Request, chat: Chat) -> str:
    """The run in the address, which has to be one of the chat. Raises NotFound."""
    run_id: str = request.path_params["run_id"]
    if services.chats.run(chat.identity, run_id) is not chat:
        raise no_such_run()
    return run_id


async def resolve(
    services: UiServices,
    chat: Chat,
    key: str,
    how: Resolution,
    text: str = "",
    *,
    run_id: str | None = None,
) -> None:
    """Answers what an uncertain call of a chat asks. Raises DecisionRefused, LimitExceeded."""
    if len(text) > MAX_RECOVERY_CHARS:
        raise LimitExceeded(
            f"The result has {len(text):,} characters; at most {MAX_RECOVERY_CHARS:,} are taken.",
            hint="Shorten it. The question is still open.",
            code="too_long",
        )
    call = find_uncertain(chat.channel, key)
    if call is None or run_id not in (None, call.run_id):
        raise DecisionRefused(
            "This was answered already, or the run that asked it has ended.",
            hint="Nothing was changed.",
        )
    await services.runs.resolve(chat, call.run_id, key, how, text)


def forking(services: UiServices) -> Forking:
    return Forking(services.chats, services.snapshots, services.runs)
