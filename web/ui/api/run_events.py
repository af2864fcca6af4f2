"""The event stream of one run, for programs.

A reader pulls pages of events from the log, as fast as it reads: it has no queue. All events of a
page are formatted by hand into one piece of bytes, because there is one for every token.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from web.harness.sessions.event_log import EventLog
from web.harness.values.errors import HarnessError
from web.harness.values.events import Event, RunResult, TextDelta, ThinkingDelta, event_data
from web.ui.access.open_streams import OpenStreams

PAGE_EVENTS = 500
"""Events that are formatted at a time: well under a millisecond of work."""

MAX_DEPTH = 200
"""Of JSON that came from a model; what lies deeper is left out."""

_CURSOR = re.compile("[0-9]{1,15}")


def read_cursor(after: str | None, last_event_id: str | None) -> int:
    """The number of the last event that a reader has; the header Last-Event-ID wins.

    Raises HarnessError (`bad_cursor`) for what is no number.
    """
    given = last_event_id or after or "0"
    if _CURSOR.fullmatch(given) is None:
        raise HarnessError(
            f"'{given[:40]}' is not a cursor.",
            hint="Send the id of the last event you have, or 0 to get all.",
            code="bad_cursor",
        )
    return int(given)


async def run_events(
    log: EventLog, run_id: str, after: int, streams: OpenStreams
) -> AsyncGenerator[bytes, None]:
    """The events of a run after a cursor as an event stream, ending after its `run_result`.

    Waits for a run that has not started. A cursor beyond the end of a run that has ended gives
    nothing.
    """
    with streams.one_more():
        cursor = after
        while True:
            await log.wait(run_id, cursor)
            page = await log.read(run_id, cursor, PAGE_EVENTS)
            if not page.events:
                return
            chunk = b"".join(map(format_event, page.events))
            if page.gap:
                chunk = _gap(cursor, page.events) + chunk
            yield chunk
            last = page.events[-1]
            if type(last.body) is RunResult:
                return
            cursor = last.number


def format_event(event: Event) -> bytes:
    """One event as it stands in the stream: `id:` its number, `event:` its type, `data:` JSON."""
    number, _, body = event
    if type(body) is TextDelta or type(body) is ThinkingDelta:
        text, message_id = (
            encode_basestring_ascii(body.text),
            encode_basestring_ascii(body.message_id),
        )
        data = f'{{"text": {text}, "message_id": {message_id}}}'
    else:
        data = to_json(event_data(body))
    return f"id: {number}\nevent: {body.type}\ndata: {data}\n\n".encode("ascii")


def to_json(value: Any) -> str:
    """JSON on one line in ASCII, of values that a model may have made up.

    A number beyond what JSON can say becomes null; what lies deeper than `MAX_DEPTH` too.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return json.dumps(_sayable(value, MAX_DEPTH))


def _sayable(value: Any, depth: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        if depth == 0:
            return None
        return {str(key): _sayable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item, depth - 1) for item in value] if depth else None
    return value


def _gap(after: int, following: Sequence[Event]) -> bytes:
    """Tells a reader that what it asks for is no longer kept. It has no id of its own."""
    return f'event: gap\ndata: {{"after": {after}, "next": {following[0].number}}}\n\n'.encode()
