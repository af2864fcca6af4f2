"""A call in the newer protocol: the server may ask first, and is called again with the answers.

What it asks is kept with its own state of the request, so that the answer can come after this
process has ended: see `Continued`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping

import anyio
from mcp.client import Client, ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
)
from pydantic import TypeAdapter, ValidationError

from web.harness.mcp.calls import Call, Calls
from web.harness.mcp.failures import ANSWER_REFUSED
from web.harness.tools.tool import Continued
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

MAX_ROUNDS = 10
"""So often a server may ask before a call gives a result."""

MAX_STATE_CHARS = 1_000_000
"""A larger state of a request is not written down: its question ends with the process."""

FIRST_PAUSE_SECONDS = 0.05
MOST_PAUSE_SECONDS = 0.25
"""Before a server is called again that has only asked to be."""

MAX_PAGES = 100

_REQUESTS: TypeAdapter[dict[str, InputRequest]] = TypeAdapter(dict[str, InputRequest])
_RESPONSES: TypeAdapter[dict[str, InputResponse]] = TypeAdapter(dict[str, InputResponse])

Responses = dict[str, InputResponse]


class Rounds:
    """One call. `is_fit` says whether a text may be written down."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        call: Call,
        name: str,
        arguments: JsonObject,
        is_fit: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._calls = calls
        self._call = call
        self._name = name
        self._arguments = arguments
        self._is_fit = is_fit

    async def run(self, continued: Continued | None = None) -> CallToolResult:
        """The result, from the beginning or from a question that was answered.

        Raises MCPError, ValidationError, and ToolError for what cannot go on.
        """
        if continued is None:
            result = await self._send(None, None)
        else:
            result = await self._go_on(continued)
        pause, rounds = FIRST_PAUSE_SECONDS, 0
        while isinstance(result, InputRequiredResult):
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise ToolError(f"'{self._name}' asked more than {MAX_ROUNDS} times.")
            responses = None
            if result.input_requests:
                requests, state = result.input_requests, result.request_state
                responses = await self._answered(requests, state, {})
                pause = FIRST_PAUSE_SECONDS
            else:
                await anyio.sleep(pause)
                pause = min(2 * pause, MOST_PAUSE_SECONDS)
            result = await self._send(responses, result.request_state)
        return result

    async def _go_on(self, continued: Continued) -> CallToolResult | InputRequiredResult:
        state, answer = continued.state, continued.answer
        try:
            requests = _REQUESTS.validate_python(state["requests"])
            responses = _RESPONSES.validate_python(state["responses"])
            asking, request_state = state["asking"], state["request_state"]
        except (KeyError, ValidationError) as error:
            raise ToolError(f"What '{self._name}' had asked cannot be read any more.") from error
        content = answer.content if answer.action == "accept" else None
        responses[asking] = ElicitResult(action=answer.action, content=content)
        every = await self._answered(requests, request_state, responses)
        return await self._send(every, request_state)

    async def _answered(
        self, requests: Mapping[str, InputRequest], state: str | None, known: Responses
    ) -> Responses:
        """All answers of a round. A person is asked one thing after another, so that each question
        holds all that was answered before it."""
        responses = dict(known)
        open_ = {key: request for key, request in requests.items() if key not in responses}
        for key, request in sorted(open_.items(), key=lambda each: _is_form(each[1])):
            if isinstance(request, ElicitRequest):
                kept = self._kept(requests, state, responses, key)
                responses[key] = await self._calls.put(request.params, self._call, kept)
            else:
                responses[key] = await self._dispatched(key, request)
        return responses

    async def _dispatched(self, key: str, request: InputRequest) -> InputResponse:
        session = self._client.session
        meta = request.params.meta if request.params is not None else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        response = await session.dispatch_input_request(context, request)
        if isinstance(response, ErrorData):
            raise MCPError.from_error_data(response)
        return response

    def _kept(
        self,
        requests: Mapping[str, InputRequest],
        state: str | None,
        responses: Responses,
        asking: str,
    ) -> JsonObject | None:
        """What the call can go on from once `asking` is answered; None for what may not be kept."""
        kept: JsonObject = {
            "request_state": state,
            "requests": _REQUESTS.dump_python(
                dict(requests), mode="json", by_alias=True, exclude_none=True
            ),
            "responses": _RESPONSES.dump_python(
                responses, mode="json", by_alias=True, exclude_none=True
            ),
            "asking": asking,
        }
        text = json.dumps(kept)
        return kept if len(text) <= MAX_STATE_CHARS and self._is_fit(text) else None

    async def _send(
        self, responses: Responses | None, state: str | None
    ) -> CallToolResult | InputRequiredResult:
        def send() -> Awaitable[CallToolResult | InputRequiredResult]:
            return self._client.session.call_tool(
                self._name,
                self._arguments,
                progress_callback=self._call.progressed,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )

        try:
            return await send()
        except MCPError as error:
            if error.code == INVALID_PARAMS and state is not None:
                # Many servers know their own state only as long as their process lives.
                raise MCPError(ANSWER_REFUSED, error.message) from error
            if error.code != HEADER_MISMATCH:
                raise
            # The schema that was listed is another by now: the list is read and the call sent once
            # more, as the specification says.
            await self._list_again(error)
            return await send()

    async def _list_again(self, mismatch: MCPError) -> None:
        cursor: str | None = None
        try:
            for _ in range(MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
                cursor = page.next_cursor
                if cursor is None or any(tool.name == self._name for tool in page.tools):
                    return
        except (MCPError, ValidationError) as error:
            raise mismatch from error


def _is_form(request: InputRequest) -> bool:
    return isinstance(request, ElicitRequest)
