"""What a journal keeps as JSON and back: steps with outcomes and calls, states, submissions.

| field of a step | |
|---|---|
| v | version of this form, 1; a step of a later one is refused |
| kind | as in `Step` |
| outcome | an object with the `type` of the outcome, such as `model_answered`, and its fields |
| messages, replaced | in the form of `values.codec` |
| calls | as in `CallRecord`, `use` and `result` as blocks of a message |
| about | as in `Step` |

A submission and a state have their `v` too, and their fields. What holds its default is left out.
With `keep`, the bytes of pictures go there by their sha256, and `load` has to give them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from web.harness.loop.actions import Outcome
from web.harness.loop.state import RunState
from web.harness.sessions.journal import CallRecord, Step, StepKind, Submission
from web.harness.sessions.typed_form import from_json, to_json
from web.harness.values.codec import Keep, Load
from web.harness.values.json_form import Fields, JsonRefused, kind_of
from web.harness.values.messages import JsonObject, Message

STEP_VERSION = 1
STATE_VERSION = 1
SUBMISSION_VERSION = 1

ADDED = ("messages", "replaced")
"""What a step does to the conversation; the rest is about the step itself."""

_HINT = "It was written by a later version. Update this one."

_KINDS: tuple[str, ...] = get_args(StepKind)


def _name(kind: type) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_OUTCOMES: Mapping[str, Any] = {_name(kind): kind for kind in get_args(Outcome)}


def step_to_json(step: Step, keep: Keep | None = None) -> JsonObject:
    """Raises NotSerialisable for what JSON cannot hold, such as arguments that a hook made."""
    form: JsonObject = {"v": STEP_VERSION, "kind": step.kind}
    if step.outcome is not None:
        form["outcome"] = outcome_to_json(step.outcome)
    for name in (*ADDED, "calls", "about"):
        value = getattr(step, name)
        if value or (name == "replaced" and value is not None):
            form[name] = to_json(value, f"{name} of a step", keep)
    return form


def step_from_json(form: Any, load: Load | None = None, where: str = "step") -> Step:
    """Raises JsonRefused; with the code `from_the_future` for what a later version wrote."""
    given = Fields(form, where)
    _check_version(given, STEP_VERSION)
    kind = given.text("kind")
    if kind not in _KINDS:
        raise _later(f"{given.name('kind')} is {kind_of(kind)}, which is no step.")
    outcome = given.take("outcome") if given.has("outcome") else None
    replaced = given.take("replaced") if given.has("replaced") else None
    step = Step(
        kind,  # type: ignore[arg-type]
        None if outcome is None else outcome_from_json(outcome, given.name("outcome")),
        _messages(given.items("messages", []), given.name("messages"), load),
        None if replaced is None else _messages(replaced, given.name("replaced"), load),
        from_json(tuple[CallRecord, ...], given.items("calls", []), given.name("calls"), load),
        given.mapping("about", {}),
    )
    given.done()
    return step


def outcome_to_json(outcome: Outcome) -> JsonObject:
    """Raises NotSerialisable."""
    name = _name(type(outcome))
    return {"type": name, **to_json(outcome, f"the outcome {name}")}


def outcome_from_json(form: Any, where: str = "outcome") -> Outcome:
    """Raises JsonRefused."""
    given = Fields(form, where)
    name = given.text("type")
    kind = _OUTCOMES.get(name)
    if kind is None:
        raise _later(f"{given.name('type')} is {kind_of(name)}, which is no outcome.")
    made: Outcome = from_json(kind, given.rest(), where)
    return made


def submission_to_json(submission: Submission, keep: Keep | None = None) -> JsonObject:
    """Raises NotSerialisable."""
    return {"v": SUBMISSION_VERSION, **to_json(submission, "a submission", keep)}


def submission_from_json(form: Any, load: Load | None = None) -> Submission:
    """Raises JsonRefused."""
    given = Fields(form, "submission")
    _check_version(given, SUBMISSION_VERSION)
    made: Submission = from_json(Submission, given.rest(), "submission", load)
    return made


def state_to_json(state: RunState) -> JsonObject:
    return {"v": STATE_VERSION, **state.as_json()}


def state_from_json(form: Any) -> RunState:
    """Raises JsonRefused."""
    given = Fields(form, "state")
    _check_version(given, STATE_VERSION)
    try:
        return RunState.from_json(given.rest())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JsonRefused(f"state is not as it was written ({error}).") from None


def _messages(forms: Any, where: str, load: Load | None) -> tuple[Message, ...]:
    made: tuple[Message, ...] = from_json(tuple[Message, ...], forms, where, load)
    return made


def _check_version(given: Fields, known: int) -> None:
    version = given.whole("v")
    if version > known:
        raise _later(f"{given.where} is in form {version}; this version reads up to {known}.")
    if version < 1:
        raise JsonRefused(f"{given.name('v')} is {version}; there is no such form.")


def _later(message: str) -> JsonRefused:
    return JsonRefused(message, hint=_HINT, code="from_the_future")
