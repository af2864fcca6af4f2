"""The runs of sub-agents inside one call: their events, questions and costs join those around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from web.harness.agent.answer import Emit
from web.harness.agent.inputs import Answerer
from web.harness.agent.questions import Answer, Approver
from web.harness.agent.totals import Totals
from web.harness.agent.watch import Watch
from web.harness.tools.inside import MAX_DEPTH
from web.harness.tools.permissions import Permissions
from web.harness.tools.previews import KeepQuestion
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ToolError
from web.harness.values.events import EventBody, NestedEvent, RunResult
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.model import Provider

if TYPE_CHECKING:
    from web.harness.agent.agent import Agent


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The run around: what its sub-agents may use of it, and who answers their questions.

    `run_id` is that of the outermost run, `depth` is 0 there.
    """

    config: AgentConfig
    provider: Provider
    tools: ToolRegistry
    permissions: Permissions
    learned_limits: LearnedLimits
    watch: Watch
    run_id: str
    depth: int = 0
    approver: Approver | None = None
    answerer: Answerer | None = None
    keep_question: KeepQuestion | None = None


class Nested:
    """Implements `tools.inside.Inside` for one call. `spent` is what its sub-agents have used.

    `start` is how often the call was started: the runs of each start have ids of their own.
    """

    def __init__(
        self,
        call_id: str,
        around: Surroundings,
        emit: Emit,
        is_too_costly: Callable[[], bool],
        stop_all: Callable[[], None],
        start: int = 1,
    ) -> None:
        self.call_id = call_id
        self._prefix = call_id if start <= 1 else f"{call_id}-r{start}"
        self.spent = Totals()
        self.around = around
        self._emit = emit
        self._is_too_costly = is_too_costly
        self._stop_all = stop_all
        self._agents: list[Agent] = []
        self._count = 0
        self._is_closed = False

    @property
    def depth(self) -> int:
        return self.around.depth

    @property
    def config(self) -> AgentConfig:
        return self.around.config

    @property
    def provider(self) -> Provider:
        return self.around.provider

    @property
    def tools(self) -> ToolRegistry:
        return self.around.tools

    @property
    def permissions(self) -> Permissions:
        return self.around.permissions

    @property
    def learned_limits(self) -> LearnedLimits:
        return self.around.learned_limits

    async def perform(self, agent: Agent, message: str) -> RunResult:
        """One turn of an agent inside the call; see `Inside.perform`."""
        if self.depth >= MAX_DEPTH:
            raise ToolError(
                f"Agents are nested {MAX_DEPTH} deep already, which is the limit. Do it yourself."
            )
        if self._is_too_costly():
            raise ToolError("The run has reached its limit of cost, so no further agent is run.")
        self._count += 1
        self._agents.append(agent)
        try:
            return await agent.perform(
                message,
                run_id=f"{self._prefix}-s{self._count}",
                emit=self._take,
                approver=self.around.approver,
                answerer=self.around.answerer,
                keep_question=self.around.keep_question,
                inside=self,
            )
        finally:
            self._agents.remove(agent)

    def decide(self, key: str, answer: Answer) -> bool:
        """Answers a question of a sub-agent; False where none can have put it."""
        for agent in self._of(key):
            agent.decide(key, answer.decision, arguments=answer.arguments, reason=answer.reason)
            return True
        return False

    def answer_input(self, key: str, answer: InputAnswer) -> bool:
        """Answers what a tool of a sub-agent asks for; False where none can have asked."""
        for agent in self._of(key):
            agent.answer_input(key, answer.action, answer.content)
            return True
        return False

    def stop(self) -> None:
        """Ends the sub-agents under way; each still gives a result."""
        for agent in tuple(self._agents):
            agent.cancel()

    def close(self) -> None:
        """The call has its result: nothing of what still happens in it is told."""
        self._is_closed = True

    def _of(self, key: str) -> list[Agent]:
        return [
            agent
            for agent in self._agents
            if agent.run_id is not None and key.startswith(f"{agent.run_id}-")
        ]

    def _take(self, bodies: list[EventBody]) -> None:
        if self._is_closed:
            return
        for body in bodies:
            self.spent.take(body)
        self._emit([NestedEvent(self.call_id, body) for body in bodies])
        if self._is_too_costly():
            # Those of the calls beside this one spend of the same limit.
            self._stop_all()
