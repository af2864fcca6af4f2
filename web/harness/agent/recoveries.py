"""The calls of which nobody knows if they ran, each put to a person once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import get_args

from web.harness.agent.answer import Emit
from web.harness.tools.tool import ToolOutput
from web.harness.tools.words import shown
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import RecoveryAnswered, RecoveryRequired, Resolution
from web.harness.values.messages import TextBlock, ToolUseBlock
from web.harness.values.text import sayable

RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

FROM_THE_PERSON = "(The program was interrupted while this ran. A person gave this as its result.)"
NOTHING_KNOWN = "The person says that it ran, and gave no result."


class Recoveries:
    """The open questions of one run."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[str, str] = {}
        self._answered: set[str] = set()
        self._untold: dict[str, RecoveryAnswered] = {}

    def open(self, key: str, use: ToolUseBlock, *, tell: bool) -> None:
        """Puts a question; without `tell` it is in the log already."""
        self._open[key] = use.id
        if tell:
            arguments = deepcopy(use.arguments)
            self._emit([RecoveryRequired(key, use.id, use.name, arguments)])

    def answer(self, key: str, how: Resolution, text: str = "") -> str:
        """The id of the call, of which `tell` is to be called then.

        Raises DecisionRefused where the question is not open, or for what is no answer.
        """
        if key in self._answered:
            raise DecisionRefused(
                "This question was answered already.", hint="Nothing was changed."
            )
        if key not in self._open:
            raise DecisionRefused(
                "This question is not open.",
                hint="The run has gone on or was stopped. Nothing was changed.",
            )
        if how not in RESOLUTIONS:
            raise DecisionRefused(
                f"{shown(how)} is no answer to whether a call ran.",
                hint=f"Say one of {', '.join(RESOLUTIONS)}. The question is still open.",
            )
        if not isinstance(text, str):
            raise DecisionRefused(
                "The result is no text.", hint="Give a text. The question is still open."
            )
        self._answered.add(key)
        call_id = self._open.pop(key)
        self._untold[call_id] = RecoveryAnswered(key, call_id, how)
        return call_id

    def tell(self, call_id: str, *, dropped: bool = False) -> None:
        """Tells how the question about a call was answered; of one that came too late, nothing."""
        answered = self._untold.pop(call_id, None)
        if answered is not None:
            self._emit([replace(answered, how="withdrawn") if dropped else answered])

    def close(self) -> None:
        """Withdraws everything: the run ends."""
        while self._open:
            key, call_id = self._open.popitem()
            self._emit([RecoveryAnswered(key, call_id, "withdrawn")])


def result_of(text: str) -> ToolOutput:
    """The result that a person gives for a call; a model is told whose words they are."""
    if not text.strip():
        return ToolOutput.of(NOTHING_KNOWN)
    return ToolOutput((TextBlock(sayable(text)), TextBlock(FROM_THE_PERSON)))
