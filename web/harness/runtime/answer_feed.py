"""Hands an agent what people answered its run, from whatever process they did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import assert_never

from web.harness.agent.agent import Agent
from web.harness.loop.actions import Action
from web.harness.sessions.journal import Executions, GivenAnswer
from web.harness.values.errors import DecisionRefused, StoreError
from web.harness.values.events import (
    ApprovalRequired,
    EventBody,
    InputRequired,
    RecoveryRequired,
    innermost,
)

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""After the database failed."""


class AnswerFeed:
    """Reads the answers of one run as they are given, for as long as `hand_all` is awaited.

    `before` is how many were there when somebody wanted the run to go on; see `Turn`.
    """

    def __init__(
        self, executions: Executions, run_id: str, agent: Agent, before: int | None = None
    ) -> None:
        self.pause_asked = False
        self._executions = executions
        self._run_id = run_id
        self._agent = agent
        # Given, and not taken: their question was answered long ago, or is put again later.
        self._kept: dict[str, GivenAnswer] = {}
        self._known = 0
        self._before = before
        self._has_looked = False

    def permit(self, action: Action) -> Action | None:
        """The `Permit` of a run that does nothing before it was handed what is there already: it
        may be a stop."""
        return action if self._has_looked else None

    async def hand_all(self) -> None:
        """Hands each answer over as it is given; returns when the run has ended."""
        while True:
            try:
                if not await self.hand_new() and await self._is_over():
                    return
                await self._executions.wait_for_answers(self._run_id, self._known)
            except StoreError as error:
                log.warning("The answers to a run cannot be read now: %s", error.message)
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception:
                # A run that hears nothing any more could not even be stopped.
                log.exception("The answers to a run could not be handed over")
                await asyncio.sleep(AGAIN_SECONDS)

    async def hand_new(self) -> bool:
        """Hands over what was given since the last time; whether there was any."""
        given = await self._executions.answers(self._run_id)
        before = self._before = len(given) if self._before is None else self._before
        new, known = given[self._known :], self._known
        # Two may read at the same time, and the one that read less may be the later one.
        self._known = max(known, len(given))
        if any(answer.kind == "cancel" for answer in new):
            # It waits for no other: whatever else was said is of no use any more.
            self._agent.cancel()
        for number, answer in enumerate(new, known):
            # Who resumes a run does not want it to pause because it once did.
            if answer.kind != "pause" or number >= before:
                self._hand(answer)
        if not self._has_looked:
            self._has_looked = True
            self._agent.wake()
        return bool(new)

    def heard(self, bodies: Iterable[EventBody]) -> None:
        """The run puts questions; one may have its answer already.

        A sub-agent that is run again asks the same once more, and each key is answered once.
        """
        if not self._kept:
            return
        for body in map(innermost, bodies):
            if isinstance(body, ApprovalRequired | InputRequired | RecoveryRequired):
                answer = self._kept.pop(body.key, None)
                if answer is not None:
                    # Whoever puts it has to be done with that.
                    asyncio.get_running_loop().call_soon(self._hand, answer)

    async def _is_over(self) -> bool:
        execution = await self._executions.find(self._run_id)
        return execution is None or execution.status == "ended"

    def _hand(self, answer: GivenAnswer) -> None:
        try:
            self._give(answer)
        except DecisionRefused as error:
            if not self._refused(answer, error.message):
                self._kept[answer.key] = answer
        except Exception:
            log.exception("An answer to a run is left out: %s", answer.key)
            self._refused(answer, "it is damaged.")

    def _give(self, answer: GivenAnswer) -> None:
        body = answer.body
        match answer.kind:
            case "decision":
                self._agent.decide(
                    answer.key,
                    body["decision"],
                    arguments=body.get("arguments"),
                    reason=body.get("reason", ""),
                )
            case "input":
                self._agent.answer_input(answer.key, body["action"], body.get("content"))
            case "resolution":
                self._agent.resolve(answer.key, body["how"], body.get("text", ""))
            case "cancel":
                self._agent.cancel()
            case "pause":
                self.pause_asked = True
                self._agent.pause()
            case _:
                assert_never(answer.kind)

    def _refused(self, answer: GivenAnswer, why: str) -> bool:
        """An answer that cannot be used would leave its question open for ever: it means no.

        False where the question is not open at all.
        """
        with suppress(DecisionRefused):
            match answer.kind:
                case "decision":
                    reason = f"The answer to it could not be used: {why}"
                    self._agent.decide(answer.key, "deny", reason=reason)
                    log.warning("An answer could not be used, so the call was denied: %s", why)
                    return True
                case "input":
                    self._agent.answer_input(answer.key, "cancel")
                    log.warning("An answer could not be used, so it was withdrawn: %s", why)
                    return True
                case _:
                    pass
        return False
