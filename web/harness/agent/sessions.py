"""Agents saved as snapshots, and made from them again."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path

from web.harness.agent.agent import Agent
from web.harness.agent.options import AgentOptions
from web.harness.snapshots.folder import SnapshotFolder
from web.harness.snapshots.snapshot import Snapshot, checked_session_id
from web.harness.tools.hooks import Happening, HookEvent
from web.harness.values.config import AgentConfig, ModelName
from web.harness.values.config_form import Difference, differences
from web.harness.values.errors import AgentBusy, ConfigurationError, SnapshotRefused
from web.harness.values.json_form import kind_of, own_copy
from web.harness.values.learned_limits import LearnedLimits

MAX_DIFFERENCES = 5
"""Fields that an error shows with both values; of further ones the number."""


async def save_session(agent: Agent, storage_dir: Path, session_id: str | None) -> str:
    """Writes a snapshot of an agent into the folder, and returns its id.

    The id is the one given, else the agent's, else a new one, which is the agent's from then on.
    Raises AgentBusy during a run, NotSerialisable, and as `SnapshotFolder.save`.
    """
    chosen = checked_session_id(session_id or agent.session_id or secrets.token_hex(16))
    snapshot = snapshot_of(agent, chosen)
    # Before it is written: a second save at the same time is one of the same session.
    agent.session_id = agent.session_id or chosen
    await asyncio.to_thread(SnapshotFolder(storage_dir).save, snapshot)
    agent.hooks.fire(Happening(HookEvent.SESSION_SAVED, data={"session_id": chosen}))
    return chosen


async def load_session(
    session_id: str, storage_dir: Path, config: AgentConfig | None, options: AgentOptions
) -> Agent:
    """An agent that goes on where a snapshot in the folder ends; see `agent_of`.

    Raises as `SnapshotFolder.load` and `agent_of`.
    """
    snapshot = await asyncio.to_thread(SnapshotFolder(storage_dir).load, session_id)
    return await agent_of(snapshot, config, options)


def snapshot_of(agent: Agent, session_id: str) -> Snapshot:
    """What a snapshot holds of an agent that is not running. Raises AgentBusy, NotSerialisable."""
    if not agent.can_be_saved:
        raise AgentBusy(
            "This agent is running; a snapshot holds no run under way.",
            hint="Save when the run has ended.",
        )
    messages, pinned = tuple(agent.memory.get_messages()), agent.memory.pinned
    return Snapshot(
        session_id,
        agent.config,
        messages,
        agent.usage,
        agent.cost,
        agent.learned_limits.as_json(),
        tuple(message.id for message in messages if message.id in pinned),
        # The application goes on changing its own while this is written.
        own_copy(agent.metadata, "metadata"),
        agent.extensions.states(),
        agent.created_at,
        time.time(),
    )


async def agent_of(
    snapshot: Snapshot, config: AgentConfig | None = None, options: AgentOptions | None = None
) -> Agent:
    """An agent with all that a snapshot holds, and with the tools and handlers of `options`.

    Raises SnapshotRefused (`configuration_differs`) where a configuration is given that is another
    than the saved one, and ConfigurationError (`extensions_differ`) where the extensions are
    others; those that were given are closed then.
    """
    given = AgentOptions(**options) if options is not None else AgentOptions()
    if "messages" in given or "metadata" in given:
        raise ConfigurationError(
            "Messages and metadata come from the snapshot.",
            hint="Change them on the agent that was loaded.",
        )
    if config is not None and (found := differences(snapshot.config, config)):
        raise SnapshotRefused(
            _differing(found),
            hint="Load it without a configuration to go on with the saved one, or give an equal "
            "one; change it on the agent afterwards.",
            code="configuration_differs",
        )
    limits = LearnedLimits.from_json(snapshot.learned_limits)
    if (shared := given.get("learned_limits")) is not None:
        _teach(shared, limits, snapshot)
        limits = shared
    given["learned_limits"] = limits
    given["messages"] = snapshot.messages
    given["metadata"] = own_copy(snapshot.metadata, "metadata")
    agent = Agent(snapshot.config, session_id=snapshot.session_id, **given)
    try:
        agent.extensions.restore(snapshot.extensions)
    except BaseException:
        await agent.aclose()
        raise
    for message_id in snapshot.pinned:
        agent.memory.pin(message_id)
    agent.totals.restore(snapshot.usage, snapshot.cost)
    agent.created_at = snapshot.created_at
    agent.hooks.fire(Happening(HookEvent.SESSION_LOADED, data={"session_id": snapshot.session_id}))
    return agent


def _differing(found: list[Difference]) -> str:
    shown = "; ".join(
        f"{each.path} ({kind_of(each.first)} was saved, {kind_of(each.second)} is given)"
        for each in found[:MAX_DIFFERENCES]
    )
    more = f"; and {len(found) - MAX_DIFFERENCES} more" if len(found) > MAX_DIFFERENCES else ""
    return f"The configuration that is given differs from the saved one in: {shown}{more}."


def _teach(shared: LearnedLimits, saved: LearnedLimits, snapshot: Snapshot) -> None:
    """What the session had learned, where those who share the limits know nothing of the model."""
    for name in snapshot.learned_limits:
        model = ModelName.parse(name)
        context = saved.get(model)
        if context is not None and shared.get(model) is None:
            shared.learn(model, context)
