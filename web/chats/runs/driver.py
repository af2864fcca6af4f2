"""Runs one turn of a chat on its session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from web.chats.chat import Chat, Turn
from web.chats.runs.equipment import Equipment
from web.chats.runs.run_output import UNFINISHED
from web.chats.setup import configured
from web.chats.transcript.spending import SPENT, Spending
from web.harness.agent.agent import Agent
from web.harness.agent.answer import Emit
from web.harness.agent.run import Prepare
from web.harness.host import ExecutionServices
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.values.config import ModelName
from web.harness.values.events import RunResult

GRANTS = "granted_tools"
"""Where a session's state keeps the tools that a person allowed for the chat."""


PINNED = "pinned"
"""And the ids of its pinned messages."""


class Driver:
    """Makes an agent from a session for each turn, and leaves in the session what it has."""

    def __init__(self, equipment: Equipment) -> None:
        self.equipment = equipment

    async def drive(
        self,
        chat: Chat,
        turn: Turn,
        services: ExecutionServices,
        emit: Emit,
        *,
        stopped: bool,
    ) -> None:
        """Runs one turn on a session: the agent is made from it, and what it leaves goes back."""
        services.replayable = False
        if stopped:
            emit([RunResult("cancelled", "", reason="stopped")])
            return
        async with self.equipped(chat, turn, services) as (agent, prepare):
            try:
                result = await agent.perform(
                    turn.text,
                    run_id=turn.run_id,
                    emit=emit,
                    attachments=turn.attachments,
                    prepare=prepare,
                    keep_question=chat.asked.keep,
                )
                services.replayable = result.status not in UNFINISHED
            finally:
                services.history = agent.memory.get_messages()
                leave(chat, agent, services)

    @asynccontextmanager
    async def equipped(
        self, chat: Chat, turn: Turn, services: ExecutionServices
    ) -> AsyncIterator[tuple[Agent, Prepare | None]]:
        """The agent of one turn, with what a session holds, and what brings its tools up to date.

        Raises ConfigurationError for a model that cannot be asked.
        """
        tools = self.equipment.tools(chat)
        model = ModelName.parse(turn.model)
        if chat.permissions is None:
            chat.permissions = Permissions(grants=services.state.get(GRANTS, ()))
            chat.show_grants()
            if SPENT in services.state:
                chat.spending = Spending.from_json(services.state[SPENT])
        record, equipment = chat.record, self.equipment
        async with Agent(
            configured(
                equipment.config, model, record.system_prompt, record.setup, equipment.prices
            ),
            provider=self.equipment.provider(model),
            tools=tools,
            permissions=chat.permissions,
            messages=services.history,
            session_id=chat.id,
            learned_limits=self.equipment.learned,
            state=services.state,
            resource=services.resource,
        ) as agent:
            _go_on_from(agent, chat, services)
            chat.agent = agent
            try:
                yield agent, self._connecting(chat, tools)
            finally:
                chat.agent = None

    def _connecting(self, chat: Chat, tools: ToolRegistry) -> Prepare | None:
        """Brings `tools` up to what the chat is connected to at that moment."""
        connected = self.equipment.connected
        if connected is None:
            return None
        added: list[str] = []

        async def prepare() -> str:
            found = await connected(chat)
            while added:
                tools.remove(added.pop())
            for tool in found.tools:
                if tool.name not in tools:
                    tools.add(tool)
                    added.append(tool.name)
            return found.instructions

        return prepare


def leave(chat: Chat, agent: Agent, services: ExecutionServices) -> None:
    """Puts into a session what it holds beside its messages."""
    chat.history = services.history
    services.state[GRANTS] = chat.grants
    services.state[SPENT] = chat.spending.as_json()
    services.state[PINNED] = sorted(agent.memory.pinned)


def _go_on_from(agent: Agent, chat: Chat, services: ExecutionServices) -> None:
    """What a session holds beside its messages."""
    agent.totals.restore(chat.spending.totals.usage, chat.spending.totals.cost)
    there = {message.id for message in services.history}
    for message_id in there.intersection(services.state.get(PINNED, ())):
        agent.memory.pin(message_id)
