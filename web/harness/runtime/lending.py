"""Lends an agent what a session holds for one run, and leaves in the session what it has then."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

from web.harness.agent.agent import Agent
from web.harness.host import ExecutionServices
from web.harness.runtime.backend import Performed
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import Recorded
from web.harness.tools.resource import no_resources
from web.harness.values.errors import ConfigurationError
from web.harness.values.json_form import json_copy
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import JsonObject, Message
from web.harness.values.usage import Usage

log = logging.getLogger(__name__)

KEPT = "agent_runtime"
"""Where a session's state has what a runtime keeps of an agent beside its messages."""

_UNFINISHED = ("failed", "cancelled")


@dataclass(frozen=True, slots=True)
class _Own:
    """What an agent has that no session has given it."""

    usage: Usage
    cost: float | None
    pinned: frozenset[str]
    grants: frozenset[str]
    extensions: dict[str, JsonObject]

    @classmethod
    def of(cls, agent: Agent) -> _Own:
        return cls(
            *(agent.usage, agent.cost, agent.memory.pinned),
            *(frozenset(agent.permissions.grants), _states_of(agent)),
        )


class Lending:
    """Moves one agent from session to session.

    With `keeps` what it has beside its messages (usage, cost, pinned messages, grants, learned
    limits, state of its extensions) is kept in the session's state under `agent_runtime`, and
    brought back when the session has it again. Nothing of it but what was learned of models goes
    from one session to another: a new one begins with what the agent had before it was ever lent.
    """

    def __init__(self, agent: Agent, *, keeps: bool = True) -> None:
        self._agent = agent
        self._keeps = keeps
        # The application's own stay where it gave any.
        self._own_state = bool(agent.state)
        self._own_resource = agent.resource is not no_resources
        self._own_messages = agent.memory.get_messages()
        self._own: _Own | None = None
        self._holds: tuple[HarnessIdentity, str, int] | None = None
        self._later: list[Message] = []

    @contextmanager
    def lent(self, services: ExecutionServices, began_after: str | None = None) -> Iterator[None]:
        """The agent has the session within the block; after one that raises, as it was before.

        `began_after` is the message that a run which goes on came after: what was said since stands
        behind the run, and is not seen by it.
        """
        agent = self._agent
        before = agent.state, agent.resource, agent.session_id
        base, self._later = _parted(self._base(services), began_after)
        holds, self._holds = self._holds, None
        try:
            self._set_messages(base)
            agent.session_id = services.session_id
            if not self._own_state:
                agent.state = services.state
            if not self._own_resource:
                agent.resource = services.resource
            if self._own is None:
                self._own = _Own.of(agent)
            if self._keeps and holds != _place(services, services.revision):
                _bring_back(agent, services.state.get(KEPT), self._own)
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
        services.history = _joined(agent.memory.get_messages(), self._later)
        services.replayable = performed.result.status not in _UNFINISHED
        if self._keeps:
            try:
                services.state[KEPT] = _kept(agent)
            except ConfigurationError:
                # An extension with a state that cannot be kept must not cost the conversation.
                log.exception("What an agent has beside its messages stays as it was kept before")
        # It is committed next, as one revision more.
        self._holds = _place(services, services.revision + 1)

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


def _bring_back(agent: Agent, kept: Any, own: _Own) -> None:
    """Makes the agent what the session keeps, and where it keeps nothing, what it was at first."""
    if not isinstance(kept, dict):
        kept = {}
    usage = Usage(**kept["usage"]) if "usage" in kept else own.usage
    agent.totals.restore(usage, kept.get("cost") if "usage" in kept else own.cost)
    memory, there = agent.memory, {message.id for message in agent.memory.get_messages()}
    pinned = there.intersection(kept.get("pinned", own.pinned))
    for message_id in memory.pinned - pinned:
        memory.unpin(message_id)
    for message_id in pinned:
        memory.pin(message_id)
    # What the application allowed when it made the agent, it allowed for every session.
    grants = own.grants | set(kept.get("grants", ()))
    for name in set(agent.permissions.grants) - grants:
        agent.permissions.revoke(name)
    for name in grants.difference(agent.permissions.grants):
        agent.permissions.grant(name)
    known, saved = agent.learned_limits, LearnedLimits.from_json(kept.get("limits", {}))
    context = saved.get(agent.config.model)
    if context is not None and known.get(agent.config.model) is None:
        known.learn(agent.config.model, context)
    for name, state in {**own.extensions, **kept.get("extensions", {})}.items():
        extension = agent.extensions.get(name)
        if extension is not None:
            extension.restore(deepcopy(state))


def _states_of(agent: Agent) -> dict[str, JsonObject]:
    """What each extension has, of those whose state can be brought back."""
    states: dict[str, JsonObject] = {}
    for name in agent.extensions.names:
        extension = agent.extensions.get(name)
        try:
            if extension is not None:
                states[name] = json_copy(extension.state(), f"The state of {name}")
        except Exception:
            log.warning("What the extension %s had at first cannot be brought back", name)
    return states


def _place(services: ExecutionServices, revision: int) -> tuple[HarnessIdentity, str, int]:
    return services.identity, services.session_id, revision


def _parted(
    messages: list[Message], began_after: str | None
) -> tuple[list[Message], list[Message]]:
    """What was said up to a message, and since; where it is not there any more, all comes first.

    With '' for the message, nothing comes first.
    """
    if began_after == "":
        return [], messages
    for at, message in enumerate(messages, 1):
        if message.id == began_after:
            return messages[:at], messages[at:]
    return messages, []


def _joined(messages: list[Message], later: list[Message]) -> list[Message]:
    if not later or not messages:
        return [*messages, *later]
    return [*messages, replace(later[0], parent_id=messages[-1].id), *later[1:]]
