"""Lends an agent what a session holds for one run, and leaves in the session what it has then."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from web.harness.agent.agent import Agent
from web.harness.host import ExecutionServices
from web.harness.runtime.backend import Performed
from web.harness.sessions.journal import Recorded
from web.harness.tools.resource import no_resources
from web.harness.values.errors import ConfigurationError
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import Message
from web.harness.values.usage import Usage

log = logging.getLogger(__name__)

KEPT = "agent_runtime"
"""Where a session's state has what a runtime keeps of an agent beside its messages."""

_UNFINISHED = ("failed", "cancelled")


class Lending:
    """Moves one agent from session to session.

    With `keeps` what it has beside its messages (usage, cost, pinned messages, grants, learned
    limits, state of its extensions) is kept in the session's state under `agent_runtime`, and
    brought back where another process goes on with the session.
    """

    def __init__(self, agent: Agent, *, keeps: bool = True) -> None:
        self._agent = agent
        self._keeps = keeps
        # The application's own stay where it gave any.
        self._own_state = bool(agent.state)
        self._own_resource = agent.resource is not no_resources
        self._own_messages = agent.memory.get_messages()
        self._holds: tuple[str, int] | None = None

    @contextmanager
    def lent(self, services: ExecutionServices) -> Iterator[None]:
        """The agent has the session within the block; after one that raises, as it was before."""
        agent = self._agent
        before = agent.state, agent.resource, agent.session_id
        base = self._base(services)
        self._set_messages(base)
        agent.session_id = services.session_id
        if not self._own_state:
            agent.state = services.state
        if not self._own_resource:
            agent.resource = services.resource
        holds, self._holds = self._holds, None
        if self._keeps and holds != (services.session_id, services.revision):
            _bring_back(agent, services.state.get(KEPT))
        try:
            yield
        except BaseException:
            self._set_messages(base)
            raise
        finally:
            agent.state, agent.resource, agent.session_id = before

    def leave(self, services: ExecutionServices, performed: Performed) -> None:
        """Puts the run into the session, within the block of `lent`."""
        agent = self._agent
        if performed.recorded is not None:
            _take_over(agent, performed.recorded)
        services.history = agent.memory.get_messages()
        services.replayable = performed.result.status not in _UNFINISHED
        if self._keeps:
            try:
                services.state[KEPT] = _kept(agent)
            except ConfigurationError:
                # An extension with a state that cannot be kept must not cost the conversation.
                log.exception("What an agent has beside its messages stays as it was kept before")
        # It is committed next, as one revision more.
        self._holds = (services.session_id, services.revision + 1)

    def _base(self, services: ExecutionServices) -> list[Message]:
        if services.revision == 0 and not services.history:
            return self._own_messages
        return services.history

    def _set_messages(self, messages: list[Message]) -> None:
        memory = self._agent.memory
        now = memory.get_messages()
        same = len(now) == len(messages) and all(
            one is other or one == other for one, other in zip(now, messages, strict=True)
        )
        if not same:
            memory.replace(messages)


def _take_over(agent: Agent, recorded: Recorded) -> None:
    """What a run brought, unless the agent ran it itself."""
    memory = agent.memory
    there = {message.id for message in memory.get_messages()}
    if recorded.messages and recorded.messages[-1].id in there:
        return
    if recorded.replaced is not None:
        memory.replace(recorded.replaced)
    for message in recorded.messages:
        memory.append(message)
    agent.totals.add(recorded.state.usage, recorded.state.cost)
    for name, key in recorded.state.grants:
        agent.permissions.grant(name, key)


def _kept(agent: Agent) -> dict[str, Any]:
    return {
        "usage": asdict(agent.usage),
        "cost": agent.cost,
        "pinned": sorted(agent.memory.pinned),
        "grants": agent.permissions.grants,
        "limits": agent.learned_limits.as_json(),
        "extensions": agent.extensions.states(),
    }


def _bring_back(agent: Agent, kept: Any) -> None:
    if not isinstance(kept, dict):
        return
    agent.totals.restore(Usage(**kept.get("usage", {})), kept.get("cost"))
    there = {message.id for message in agent.memory.get_messages()}
    for message_id in there.intersection(kept.get("pinned", ())):
        agent.memory.pin(message_id)
    for name in kept.get("grants", ()):
        if name not in agent.permissions.grants:
            agent.permissions.grant(name)
    known, saved = agent.learned_limits, LearnedLimits.from_json(kept.get("limits", {}))
    context = saved.get(agent.config.model)
    if context is not None and known.get(agent.config.model) is None:
        known.learn(agent.config.model, context)
    for name, state in kept.get("extensions", {}).items():
        extension = agent.extensions.get(name)
        if extension is not None:
            extension.restore(state)
