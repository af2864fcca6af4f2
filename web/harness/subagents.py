"""Sub-agents: a tool that has another agent do a task, with its own prompt, tools and limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

from web.harness.agent.agent import Agent
from web.harness.agent.given import Tools, tools_of
from web.harness.tools.functions import function_tool
from web.harness.tools.inside import Inside
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ToolError
from web.harness.values.events import RunResult
from web.harness.values.model import Provider

SUB_AGENT_PROMPT = (
    "You are a sub-agent: another agent has given you one task. You see nothing of its "
    "conversation, and it sees only your last message. Do the task with the tools you have, do not "
    "ask back, and answer with the result, in full and in plain words. If it cannot be done, say "
    "what is in the way."
)

DELEGATE = (
    "Has a sub-agent do a task by itself and gives back its answer. It has the same tools as you "
    "and none of your conversation, so say in the task all it has to know. Good for work of many "
    "steps of which only the outcome matters, and for several tasks at the same time."
)


def sub_agent_tool(
    name: str,
    description: str,
    *,
    config: AgentConfig | None = None,
    tools: Tools | None = None,
    permissions: Permissions | None = None,
    provider: Provider | None = None,
    permission: PermissionLevel = PermissionLevel.ALLOW,
    timeout_seconds: float = math.inf,
) -> Tool:
    """A tool whose calls each run a new agent on a `task` and return its answer.

    Without a `config` the agent has that of the run which calls it, with `SUB_AGENT_PROMPT`.
    Without `tools` it has those of that run but this one, under the same permissions; with some,
    those alone, under `permissions`. The run's own provider is used where the model is one of the
    same API, else `provider`, which stays its owner's. What it does is shown nested in the call,
    its questions reach the person, its usage and cost count for the run. Three deep at most. With
    a `timeout_seconds` the time in which a person is asked counts too.
    """
    given = None if tools is None else ToolRegistry(tools_of(tools))

    async def run_task(
        task: Annotated[str, "What to do, with all that has to be known for it."],
        context: ToolContext,
    ) -> ToolOutput:
        inside = context.inside
        if inside is None:
            raise ToolError(f"'{name}' works only when an agent calls it.")
        own = config or replace(inside.config, system_prompt=SUB_AGENT_PROMPT)
        agent = Agent(
            own,
            provider=_provider(own, provider, inside),
            tools=_others(inside.tools, name) if given is None else ToolRegistry(given),
            permissions=permissions or (inside.permissions if given is None else Permissions()),
            session_id=context.session_id,
            state=context.state,
            resource=context.resource,
            learned_limits=inside.learned_limits,
        )
        async with agent:
            return _output(await inside.perform(agent, task))

    return function_tool(
        run_task,
        name=name,
        description=description,
        permission=permission,
        timeout_seconds=timeout_seconds,
        share_signature=True,
    )


def delegate_tool() -> Tool:
    """The tool `delegate`: a sub-agent with the model, tools and permissions of its caller."""
    return sub_agent_tool("delegate", DELEGATE)


def _provider(config: AgentConfig, given: Provider | None, inside: Inside) -> Provider | None:
    """None where the agent has to make its own, which it closes."""
    if given is None and config.model.provider == inside.config.model.provider:
        return inside.provider
    return given


def _others(tools: ToolRegistry, name: str) -> ToolRegistry:
    return ToolRegistry(tool for tool in tools if tool.name != name)


def _output(result: RunResult) -> ToolOutput:
    if result.status == "completed" and result.text:
        return ToolOutput.of(result.text)
    if result.status == "completed":
        return ToolOutput.of("The sub-agent ended without an answer.", is_error=True)
    ended = {
        "limit": f"The sub-agent was stopped at a limit ({result.reason}).",
        "cancelled": "The sub-agent was stopped.",
        "failed": f"The sub-agent failed ({result.reason}).",
    }[result.status]
    partial = f" It had written: {result.text}" if result.text else ""
    return ToolOutput.of(ended + partial, is_error=True)
