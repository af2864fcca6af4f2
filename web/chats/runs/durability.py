"""Runs of chats that are written down at each step: where, and what becomes of those cut off."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from web.chats.chat import Chat, Turn
from web.chats.journal.picture_bytes import turn_with_bytes
from web.harness.agent.agent import Agent
from web.harness.runtime.backend import Backend, executions_of
from web.harness.runtime.fitting import fitting_of
from web.harness.sessions.answers import STOP
from web.harness.sessions.journal import Execution, Executions, GivenAnswer, Submission
from web.harness.values.errors import DecisionRefused, HarnessError, NotFound, StoreError
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

Resume = Literal["auto", "ask"]
"""A run that was cut off goes on by itself, or when a person says so."""

LEASE_WAIT_SECONDS = 2.0
"""For a session that somebody looks at, or another server runs."""

AGAIN_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""After a store did not work; between all later tries the last."""

TAKEN_BACK = "taken_back"
"""What is written about the run of a message that was taken back before any server began it."""


@dataclass(frozen=True, slots=True)
class Durability:
    """What runs are written down with. `models` are those that are offered."""

    backend: Backend
    resume: Resume
    models: tuple[str, ...]

    async def executions(self) -> Executions:
        return executions_of(await self.backend.open())

    async def submit(self, chat: Chat, turn: Turn, agent: Agent, instead_of: str = "") -> Execution:
        """Has the run of a turn known; the same turn again is the same run."""
        executions = await self.executions()
        return await executions.submit(
            Submission(
                turn.run_id,
                chat.identity,
                chat.id,
                turn.run_id,  # Which request is which turn is in the journal of the chat.
                turn.text,
                turn.attachments,
                fitting_of(agent),
                {"model": turn.model, "instead_of": instead_of},
            )
        )

    async def take_back(self, chat: Chat, turn: Turn) -> bool:
        """Has no server begin with a message that waits; False where one was first: then there is a
        run. Raises StoreError."""
        executions, run_id = await self.executions(), turn.run_id
        # It is the request that whoever begins with it makes, bytes and all: nobody could read it
        # without, and another one would be refused.
        turn = await turn_with_bytes(chat, turn)
        about: JsonObject = {TAKEN_BACK: True}
        # The first to submit a run decides what it is: all others are given the same.
        taken = await executions.submit(
            Submission(
                run_id,
                chat.identity,
                chat.id,
                run_id,
                turn.text,
                turn.attachments,
                about=about,
            )
        )
        if not is_taken_back(taken):
            return False
        if taken.status != "ended":
            # Somebody else may take it back at the same time.
            try:
                begun, _ = await executions.begin(run_id)
                await executions.end(run_id, begun.fence, "cancelled")
            except HarnessError as error:
                if error.code not in ("run_ended", "lease_lost"):
                    raise
        return True

    async def all_unfinished(self, chat: Chat) -> list[Execution]:
        """The runs of a chat that have not ended, those that have not begun too."""
        return await (await self.executions()).unfinished(chat.identity, chat.id)

    async def unfinished(self, chat: Chat) -> list[Execution]:
        """The runs of a chat that have begun and not ended, the oldest first."""
        return [each for each in await self.all_unfinished(chat) if each.steps]

    async def tell(self, run_id: str, answer: GivenAnswer) -> None:
        """Writes down what a person said to a run; whoever performs it is told.

        Raises DecisionRefused where it was said before, or the run has ended, and StoreError.
        """
        await (await self.executions()).answer(run_id, answer)
        await self.backend.answered(run_id, answer)

    async def stop(self, run_id: str) -> bool:
        """Has a run stop for good; False where that could not be written down."""
        try:
            # Somebody may have said so already, or it has ended; or it never began.
            with suppress(DecisionRefused, NotFound):
                await self.tell(run_id, STOP)
        except StoreError as error:
            log.warning("A run is stopped here only: %s", error.message)
            return False
        return True

    async def is_stopped(self, run_id: str) -> bool:
        answers = await (await self.executions()).answers(run_id)
        return any(each.kind == "cancel" for each in answers)

    def check_model(self, turn: Turn) -> None:
        """Raises HarnessError (`runtime_differs`) where a run's model is not offered any more."""
        if turn.model not in self.models:
            raise HarnessError(
                f"Its model, {turn.model}, is not offered here any more.",
                hint="Start the server with it to go on, or leave the answer as it is.",
                code="runtime_differs",
            )


def is_taken_back(execution: Execution) -> bool:
    """Whether the run was never begun, and never is."""
    return TAKEN_BACK in execution.submission.about
