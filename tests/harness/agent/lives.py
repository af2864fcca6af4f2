"""A run that is lived by several processes: each ends where a test says, and the next goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from tests.harness.agent.agents import QUICK
from tests.support.scripted_provider import calls, says
from tests.support.written_run import WrittenRun
from web.harness.agent.agent import Agent
from web.harness.agent.pausing import RunPaused
from web.harness.sessions.journal import Step, StepKind
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ReplayPolicy, Tool, ToolContext, ToolOutput
from web.harness.values.config import AgentConfig
from web.harness.values.errors import DecisionRefused, ProviderError
from web.harness.values.events import (
    ApprovalRequired,
    Decision,
    EventBody,
    InputRequired,
    RecoveryRequired,
    Resolution,
    RunResult,
    innermost,
)
from web.harness.values.messages import JsonObject, Message
from web.harness.values.model import ModelChunk, ModelRequest

SECONDS = 20.0

Script = Callable[[ModelRequest], list[Any]]
"""What a model answers to a request, whichever process sends it."""


class ScriptedModel:
    """A provider that keeps nothing from one process to the next."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[ModelChunk], None]:
        self.requests.append(request)
        for step in self._script(request):
            await asyncio.sleep(0)
            if isinstance(step, ProviderError):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield [step]

    async def aclose(self) -> None:
        """Nothing is open."""


def three_calls(request: ModelRequest) -> list[Any]:
    """Two tools side by side, then one that asks, then the answer."""
    said = request.messages[-1]
    results = [block.text for block in said.content if block.type == "tool_result"]
    if not results:
        return calls(("act", {"what": "one"}), ("look", {"what": "two"}), text="First both. ")
    if len(results) == 2:
        return calls(("save", {"what": "three"}), text="Then this. ")
    return says("All ", "done.")


class World:
    """What the tools do outside of the process: it stays when the process ends."""

    def __init__(self, policy: ReplayPolicy = "manual") -> None:
        self.policy = policy
        self.began: list[tuple[str, str]] = []
        self.done: list[tuple[str, str]] = []

    def tools(self, written: WrittenRun) -> ToolRegistry:
        """`act` has the replay policy, `look` is safe, `save` is manual and asks."""

        def tool(name: str, policy: ReplayPolicy, level: PermissionLevel) -> Tool:
            async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
                if written.is_over:
                    await asyncio.Event().wait()
                self.began.append((name, context.call_id))
                await asyncio.sleep(0)
                if written.is_over:
                    await asyncio.Event().wait()
                self.done.append((name, context.call_id))
                return ToolOutput.of(f"{name} {arguments['what']}")

            return Tool(name, name, {"type": "object"}, handle, level, replay=policy)

        return ToolRegistry(
            [
                tool("act", self.policy, PermissionLevel.ALLOW),
                tool("look", "safe", PermissionLevel.ALLOW),
                tool("save", "manual", PermissionLevel.ASK),
            ]
        )

    def times(self, name: str, *, begun: bool = False) -> int:
        return [each for each, _ in (self.began if begun else self.done)].count(name)


class Person:
    """Answers what is asked, also what was asked by a process that is gone."""

    def __init__(
        self,
        decision: Decision = "allow",
        how: Resolution = "result",
        arguments: JsonObject | None = None,
        content: JsonObject | None = None,
    ) -> None:
        self.decision: Decision = decision
        self.how: Resolution = how
        self.arguments = arguments
        self.content = content
        self.resolved: list[str] = []

    def heard(self, agent: Agent, body: EventBody) -> None:
        """Answers a question soon after it was put."""
        body = innermost(body)
        if isinstance(body, ApprovalRequired | InputRequired | RecoveryRequired):
            asyncio.get_running_loop().call_soon(self._answer, agent, body)

    def _answer(
        self, agent: Agent, body: ApprovalRequired | InputRequired | RecoveryRequired
    ) -> None:
        with suppress(DecisionRefused):
            match body:
                case ApprovalRequired():
                    agent.decide(body.key, self.decision, arguments=self.arguments)
                case InputRequired():
                    agent.answer_input(body.key, "accept", self.content)
                case RecoveryRequired():
                    agent.resolve(body.key, self.how, "given by hand")
                    self.resolved.append(body.key)


class Lives:
    """One run. `live` is one process of it; the last one's agent and result are kept."""

    def __init__(
        self,
        world: World | None = None,
        *,
        person: Person | None = None,
        script: Script = three_calls,
        config: AgentConfig = QUICK,
        history: tuple[Message, ...] = (),
        tools: Callable[[WrittenRun], ToolRegistry] | None = None,
        grants: tuple[str, ...] | None = None,
    ) -> None:
        self.world = world if world is not None else World()
        self.person: Person | None = person if person is not None else Person()
        self.written = WrittenRun()
        self.agent: Agent | None = None
        self.model = ScriptedModel(script)
        self.before: Callable[[Agent, EventBody | Step], None] = lambda agent, entry: None
        self.made: Callable[[Agent], None] = lambda agent: None
        self._config = config
        self._history = history
        self._grants = grants
        self._tools = tools if tools is not None else self.world.tools

    async def live(self, ends_at: int | None = None, **more: Any) -> RunResult | None:
        """Performs the run, or goes on with it; None where the process ended, or it was paused."""
        self.written = written = WrittenRun(self.written.entries, ends_at=ends_at)
        agent = self.agent = Agent(
            self._config,
            provider=self.model,
            tools=self._tools(written),
            messages=self._history,
            permissions=Permissions(grants=self._grants),
        )
        self.made(agent)
        recorded = written.recorded

        def wrote(entry: EventBody | Step) -> None:
            self.before(agent, entry)
            if self.person is None:
                return
            if isinstance(entry, Step):
                if entry.kind == "resumed":
                    for body in written.events:
                        self.person.heard(agent, body)
            else:
                self.person.heard(agent, entry)

        written.wrote = wrote
        run = agent.perform(
            "Go", run_id="r", emit=written.emit, journal=written, recorded=recorded, **more
        )
        performing = asyncio.ensure_future(run)
        ending = asyncio.ensure_future(written.over.wait())
        try:
            async with asyncio.timeout(SECONDS):
                await asyncio.wait({performing, ending}, return_when=asyncio.FIRST_COMPLETED)
                if written.is_over:
                    performing.cancel()
                    await asyncio.wait({performing})
                    return None
                return await performing
        except RunPaused:
            return None
        finally:
            ending.cancel()
            performing.cancel()
            await asyncio.wait({performing, ending})

    def ends_after(self, kind: StepKind, times: int = 1) -> None:
        """The next process ends when it has written such a step so often."""
        left = times

        def count(agent: Agent, entry: EventBody | Step) -> None:
            nonlocal left
            left -= isinstance(entry, Step) and entry.kind == kind
            if left == 0:
                self.written.over.set()
                self.before = lambda agent, entry: None

        self.before = count

    def die(self, *, lossy: bool = False) -> None:
        """What the next process finds of the run."""
        self.written = self.written.after_the_end(lossy=lossy)


def shown_text(events: list[EventBody]) -> str:
    """The text that a person sees in the end: what was taken back is not among it."""
    from web.harness.values.events import AttemptReset, TextDelta

    shown: list[TextDelta] = []
    for body in events:
        if isinstance(body, TextDelta):
            shown.append(body)
        elif isinstance(body, AttemptReset):
            shown = [each for each in shown if each.message_id != body.message_id]
    return "".join(each.text for each in shown)
