"""Neighbouring deltas of one stream, joined when nobody needs them one by one any more.

Of neighbouring reports of one call's progress the last is kept: it says what the others said.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from web.harness.values.events import (
    ApprovalRequired,
    Event,
    EventBody,
    NestedEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    innermost,
)


def join_deltas(events: Sequence[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one stream joined.

    A joined delta carries the number and time of the last one it holds.
    """
    joined: list[Event] = []
    pieces: list[str] = []
    for event in events:
        if joined and _continues(joined[-1].body, event.body):
            joined[-1] = event
        else:
            _close(joined, pieces)
            joined.append(event)
        pieces.append(_delta_text(event.body))
    _close(joined, pieces)
    return joined


def told_twice(events: Iterable[Event]) -> list[Event]:
    """The arguments of calls as a model wrote them, where another event has them as a whole."""
    told = [(event, innermost(event.body)) for event in events]
    whole = {body.call_id for _, body in told if isinstance(body, ToolCallStart | ApprovalRequired)}
    return [
        event for event, body in told if isinstance(body, ToolCallDelta) and body.call_id in whole
    ]


def find_seams(events: Sequence[Event], joined: Iterable[Event]) -> dict[int, array[int]]:
    """Where the pieces of each joined delta end, in characters of its text, by its number.

    `events` follow each other without gaps, `joined` are the same as `join_deltas` gives them. A
    reader that has some of the pieces needs only the rest.
    """
    seams: dict[int, array[int]] = {}
    done = 0
    for event in joined:
        upto = event.number - events[0].number + 1
        if upto - done > 1:
            lengths = (len(_delta_text(piece.body)) for piece in events[done:upto])
            seams[event.number] = array("I", accumulate(lengths))
        done = upto
    return seams


def rest_of(event: Event, ends: array[int], after: int) -> Event:
    """What a joined delta holds beyond the pieces up to the cursor."""
    known = after - (event.number - len(ends))
    if known <= 0:
        return event
    return _with_text(event, _delta_text(event.body)[ends[known - 1] :])


def _close(joined: list[Event], pieces: list[str]) -> None:
    """Gives the last joined event the text of all its pieces."""
    if len(pieces) > 1:
        joined[-1] = _with_text(joined[-1], "".join(pieces))
    pieces.clear()


def _with_text(event: Event, text: str) -> Event:
    return event._replace(body=_body_with_text(event.body, text))


def _body_with_text(body: EventBody, text: str) -> EventBody:
    match body:
        case ToolCallDelta():
            return replace(body, arguments=text)
        case TextDelta() | ThinkingDelta():
            return replace(body, text=text)
        case NestedEvent():
            return replace(body, body=_body_with_text(body.body, text))
    return body


def _continues(earlier: EventBody, later: EventBody) -> bool:
    if isinstance(earlier, NestedEvent) and isinstance(later, NestedEvent):
        return earlier.call_id == later.call_id and _continues(earlier.body, later.body)
    if isinstance(earlier, TextDelta | ThinkingDelta) and type(earlier) is type(later):
        return earlier.message_id == getattr(later, "message_id", None)
    if isinstance(earlier, ToolCallDelta | ToolProgress) and type(earlier) is type(later):
        return earlier.call_id == getattr(later, "call_id", None)
    return False


def _delta_text(body: EventBody) -> str:
    match body:
        case TextDelta() | ThinkingDelta():
            return body.text
        case ToolCallDelta():
            return body.arguments
        case NestedEvent():
            return _delta_text(body.body)
    return ""
