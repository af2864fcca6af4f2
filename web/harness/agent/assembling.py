"""The parts of one run of an agent, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from web.harness.agent.answer import Emit
from web.harness.agent.calls import Calls
from web.harness.agent.condenser import Condenser
from web.harness.agent.context_gauge import ContextGauge
from web.harness.agent.control import Control
from web.harness.agent.inputs import Answerer
from web.harness.agent.model_call import ModelCalls, Prepare
from web.harness.agent.nested import Nested, Surroundings
from web.harness.agent.questions import Approver
from web.harness.agent.run import Permit, Run, at_once
from web.harness.agent.watch import Watch
from web.harness.loop.state import RunLimits
from web.harness.sessions.journal import Recorded, RunJournal
from web.harness.tools.previews import KeepQuestion
from web.harness.tools.tool import ToolContext
from web.harness.values.messages import AttachedBlock, ContentBlock, TextBlock
from web.harness.values.model import Provider
from web.harness.values.tokens import ToolsCounter

if TYPE_CHECKING:
    from web.harness.agent.agent import Agent


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of an agent is given; see `Agent.perform`."""

    message: str
    run_id: str
    emit: Emit
    attachments: Sequence[AttachedBlock] = ()
    approver: Approver | None = None
    answerer: Answerer | None = None
    prepare: Prepare | None = None
    keep_question: KeepQuestion | None = None
    inside: Nested | None = None
    journal: RunJournal | None = None
    recorded: Recorded | None = None
    permit: Permit = at_once


def assemble(agent: Agent, turn: Turn, provider: Provider, counter: ToolsCounter) -> Run:
    """A run that has begun, its message written, or that goes on from where it was recorded."""
    turn_id, memory = f"{turn.run_id}-0", agent.memory
    control = _control(agent, turn)
    if turn.recorded is not None:
        agent.permissions.recall(turn.recorded.state.grants)
    around = _surroundings(agent, turn, provider)
    watch = around.watch
    calls = Calls(
        config=agent.config,
        tools=agent.tools,
        permissions=agent.permissions,
        context=ToolContext(
            "", around.run_id, agent.session_id, agent.state, resource=agent.resource
        ),
        emit=watch.emit,
        around=around,
        control=control,
    )
    gauge = ContextGauge(
        turn_id,
        config=agent.config,
        conversation=memory,
        learned=agent.learned_limits,
        tools=counter,
    )
    models = ModelCalls(
        config=agent.config,
        provider=provider,
        tools=agent.tools,
        permissions=agent.permissions,
        calls=calls,
        control=control,
        watch=watch,
        gauge=gauge,
        prepare=agent.extensions.preparing(turn.prepare),
    )
    condenser = Condenser(
        turn_id,
        config=agent.config,
        provider=provider,
        conversation=memory,
        gauge=gauge,
        watch=watch,
    )
    return Run(
        control=control,
        models=models,
        calls=calls,
        condenser=condenser,
        watch=watch,
        recorded=turn.recorded,
        permit=turn.permit,
    )


def _control(agent: Agent, turn: Turn) -> Control:
    if turn.recorded is not None:
        return Control.take_up(turn.recorded, agent.memory, turn.journal)
    # Attachments may come without a word, and some APIs refuse an empty text.
    said = (TextBlock(turn.message),) if turn.message.strip() or not turn.attachments else ()
    content: tuple[ContentBlock, ...] = (*turn.attachments, *said)
    limits = RunLimits.of(agent.config)
    return Control.begin(turn.run_id, content, limits, agent.memory, turn.journal)


def _surroundings(agent: Agent, turn: Turn, provider: Provider) -> Surroundings:
    inside = turn.inside
    outer, call_id = (inside.around.watch, inside.call_id) if inside is not None else (None, "")
    return Surroundings(
        agent.config,
        provider,
        agent.tools,
        agent.permissions,
        agent.learned_limits,
        Watch(turn.run_id, turn.emit, agent.hooks, agent.totals, outer, call_id),
        inside.around.run_id if inside is not None else turn.run_id,
        inside.depth + 1 if inside is not None else 0,
        turn.approver,
        turn.answerer,
        turn.keep_question,
    )
