"""The steps of a run as a person or a program looks at them: plain data, whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from web.harness.sessions.journal import StepKind
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call as one step has it. `arguments` are those that it runs with, None where the step does
    not say. `result` is what the model reads, `pictures` how many came with it."""

    call_id: str
    name: str
    arguments: JsonObject | None = None
    malformed: str = ""
    replay: str = ""
    refusal: str = ""
    decision: str = ""
    edited: bool = False
    asks: JsonObject | None = None
    result: str | None = None
    is_error: bool = False
    pictures: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step. `at` is seconds since the epoch, `cursor` the last event before it.

    `text` and `thinking` are those of the messages that it added, whose `roles` are given. `how`
    is the one word of its outcome: why the model stopped, a decision, a code. `words` say it.
    `about` is what the journal says beside that: of a model call its model and sizes. A chat can be
    begun from it if it `forks`.
    """

    number: int
    at: float
    kind: StepKind
    cursor: int = 0
    model: str = ""
    seconds: float | None = None
    usage: Usage | None = None
    cost: float | None = None
    roles: tuple[str, ...] = ()
    text: str = ""
    thinking: str = ""
    attachments: tuple[str, ...] = ()
    calls: tuple[StepCall, ...] = ()
    how: str = ""
    words: str = ""
    wait: float | None = None
    about: JsonObject = field(default_factory=dict)
    forks: bool = False
