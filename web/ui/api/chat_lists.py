"""The list of a person's chats for programs: all of them, or page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from web.chats.chat import Chat
from web.chats.storage.listing import Listed
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import HarnessError
from web.ui.api.chat_summaries import summary_of
from web.ui.api.operations import Call, Operation, Query
from web.ui.api.shapes import ChatSummary, Nothing

MOST = 1_000
"""Chats of one page."""

INLINE = 50
"""Beyond so many, a thread makes the answer."""

_LIMIT = re.compile(r"[0-9]{1,9}")
_LIST = TypeAdapter(list[ChatSummary])


async def list_chats(call: Call[Nothing]) -> Response:
    query = call.request.query_params
    limit = _limit(query["limit"]) if "limit" in query else None
    found = await call.services.chats.known(
        call.identity, after=query.get("after", ""), limit=limit
    )
    # A chat that is in memory may change in the middle of being told.
    told: list[Listed | dict[str, Any]] = [
        summary_of(each) if isinstance(each, Chat) else each for each in found
    ]
    if len(told) > INLINE:
        content = await run_in_thread(lambda: _content(told))
    else:
        content = _content(told)
    return Response(content, media_type="application/json")


def _content(found: Sequence[Listed | dict[str, Any]]) -> bytes:
    return _LIST.dump_json(
        [ChatSummary(**(each if isinstance(each, dict) else summary_of(each))) for each in found]
    )


def _limit(given: str) -> int:
    if _LIMIT.fullmatch(given) is None or not 1 <= int(given) <= MOST:
        raise HarnessError(
            f"The limit has to be a number from 1 to {MOST:,}.",
            hint="Without one, all chats are listed.",
            code="invalid_request",
        )
    return int(given)


LIST_OPERATION = Operation(
    "GET",
    "/api/chats",
    "All chats, the one with the newest message first",
    list_chats,
    Nothing,
    list[ChatSummary],
    refusals=("not_found", "invalid_request"),
    query=(
        Query("limit", f"At most so many, up to {MOST:,}; without it all.", "^[0-9]{1,9}$"),
        Query("after", "Id of the last chat of the page before.", "^.{1,200}$"),
    ),
)
