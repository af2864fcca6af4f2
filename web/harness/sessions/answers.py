"""What people may say to a run: checked before it is written down, where it counts once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never, get_args

from web.harness.sessions.journal import GivenAnswer
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import Decision, InputAction, Resolution

STOP = GivenAnswer("cancel", "cancel")
"""Ends a run for good."""

MAX_REASON_CHARS = 10_000
"""Of why a call is denied."""

MAX_RESULT_CHARS = 1_000_000
"""Of what a person gives as the result of a call."""


def check_answer(answer: GivenAnswer) -> None:
    """Raises DecisionRefused for an answer that no run can take; its question is still open."""
    body = answer.body
    if not isinstance(body, dict):
        raise _refused("An answer is not an object.")
    match answer.kind:
        case "decision":
            _one_of(body.get("decision"), get_args(Decision))
            _object_or_none(body.get("arguments"), "The arguments are")
            _text(body.get("reason", ""), "The reason", MAX_REASON_CHARS)
        case "input":
            _one_of(body.get("action"), get_args(InputAction))
            _object_or_none(body.get("content"), "The content is")
        case "resolution":
            _one_of(body.get("how"), get_args(Resolution))
            _text(body.get("text", ""), "The result", MAX_RESULT_CHARS)
        case "cancel" | "pause":
            pass
        case _:
            assert_never(answer.kind)


def next_pause(given: Iterable[GivenAnswer]) -> GivenAnswer:
    """A pause of a run that was told all this: each has a key of its own."""
    return GivenAnswer("pause", f"pause-{sum(each.kind == 'pause' for each in given) + 1}")


def _one_of(value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise _refused("This is no answer to the question.", f"Say one of {', '.join(allowed)}.")


def _object_or_none(value: Any, what: str) -> None:
    if value is not None and not isinstance(value, dict):
        raise _refused(f"{what} no object.", "Give fields by their names.")


def _text(value: Any, what: str, most: int) -> None:
    if not isinstance(value, str):
        raise _refused(f"{what} is no text.", "Give a text; it may be empty.")
    if len(value) > most:
        raise _refused(
            f"{what} has {len(value):,} characters; at most {most:,} fit.", "Shorten it."
        )


def _refused(message: str, hint: str = "") -> DecisionRefused:
    return DecisionRefused(message, hint=f"{hint} The question is still open.".strip())
