"""The tool calls of a chat's runs as cards, those of sub-agents inside the call they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from web.chats.parts.channel import Channel
from web.chats.parts.halted_kinds import Recovery
from web.chats.parts.kinds import Call, CallStatus, NestedState, Progress, Question, ShownPart
from web.chats.parts.links import web_host
from web.chats.parts.plan_kinds import Plan
from web.chats.transcript.inputs import read_input
from web.chats.transcript.run_words import NOT_RUN
from web.chats.transcript.turn_state import TurnState
from web.harness.values.events import (
    ApprovalRequired,
    InputAnswered,
    InputRequired,
    RecoveryAnswered,
    RecoveryRequired,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
)

SHOWN_RESULT_CHARS = 8_000
"""Of a tool result; the whole is behind a link."""


class ShownCalls:
    """Puts the cards into a channel, each into the slot of its run."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def get(self, call_id: str) -> Call | None:
        part = self._channel.get(f"c-{call_id}")
        return part.data if part is not None and isinstance(part.data, Call) else None

    def asking(self, turn: TurnState) -> list[Call]:
        """The open calls of a run, and of its sub-agents, that wait for the person."""
        found = map(self.get, turn.open_calls())
        return [call for call in found if call is not None and call.waits]

    def only_wait(self, turn: TurnState) -> bool:
        """Whether a run does nothing before the person answers."""
        found = [call for call in map(self.get, turn.open_calls()) if call is not None]
        return any(call.waits for call in found) and not any(
            call.status == "running" and not call.waits and call.nested != "asking"
            for call in found
        )

    def writing(self, turn: TurnState, body: ToolCallDelta) -> str:
        """Returns the name of the tool, as far as it is known."""
        known = self.get(body.call_id)
        written = (known.written if known else 0) + len(body.arguments)
        name = body.name or (known.name if known else "")
        turn.calls[body.call_id] = body.message_id
        self._put(turn, Call(turn.run_id, body.call_id, name, "writing", written=written))
        return name

    def ask(self, turn: TurnState, body: ApprovalRequired) -> None:
        turn.calls[body.call_id] = body.message_id
        self._put(
            turn,
            Call(
                turn.run_id,
                body.call_id,
                body.name,
                "asking",
                body.arguments,
                question=Question(body.key, body.preview, body.always_asks),
                hints=body.hints,
            ),
        )

    def start(self, turn: TurnState, body: ToolCallStart) -> None:
        known = self.get(body.call_id)
        if known is not None and known.nested:
            # It starts once more, after the server was stopped: what its sub-agent does comes anew.
            self._clear(body.call_id)
        turn.calls[body.call_id] = body.message_id
        self._put(
            turn,
            Call(
                turn.run_id,
                body.call_id,
                body.name,
                "running",
                body.arguments,
                decision=body.decision,
                edited=body.edited,
                hints=body.hints,
                resolved=known.resolved if known is not None else None,
            ),
        )

    def recover(self, turn: TurnState, body: RecoveryRequired) -> None:
        """Asks whether a call ran that was cut off."""
        known = self.get(body.call_id) or Call(turn.run_id, body.call_id, body.name, "unknown")
        turn.calls.setdefault(body.call_id, "")
        self._put(turn, replace(_cut_off(known), recovery=Recovery(body.key)))

    def recovered(self, turn: TurnState, body: RecoveryAnswered) -> None:
        call = self.get(body.call_id)
        if call is not None and call.recovery is not None:
            how = call.resolved if body.how == "withdrawn" else body.how
            self._put(turn, replace(call, recovery=None, resolved=how))

    def halt(self, turn: TurnState) -> None:
        """The run stands still: nobody knows how far the calls came that were running."""
        for call_id in turn.open_calls():
            call = self.get(call_id)
            if call is not None and call.status == "running":
                self._replace(_cut_off(call))

    def progress(self, turn: TurnState, body: ToolProgress) -> None:
        call = self.get(body.call_id)
        if call is not None and call.status == "running":
            progress = Progress(body.done, body.total, body.message)
            self._put(turn, replace(call, progress=progress))

    def ask_input(self, turn: TurnState, body: InputRequired) -> None:
        call = self.get(body.call_id)
        if call is not None and call.status == "running":
            asked = read_input(body.key, body.request)
            self._put(turn, replace(call, inputs=(*call.inputs, asked)))

    def answered(self, turn: TurnState, body: InputAnswered) -> str:
        """Returns the name of the tool; '' for a call that is not shown."""
        call = self.get(body.call_id)
        if call is None:
            return ""
        inputs = tuple(each for each in call.inputs if each.key != body.key)
        ended = call.answered if body.action == "withdrawn" else (*call.answered, body.action)
        self._put(turn, replace(call, inputs=inputs, answered=ended))
        return call.name

    def result(self, turn: TurnState, body: ToolResult) -> None:
        known = self.get(body.call_id) or Call(turn.run_id, body.call_id, body.name, "running")
        turn.settle_call(body.call_id)
        if body.plan and not body.is_error:
            self._show_plan(turn, body)
            if known.decision is None:
                # The card of the plan says all of it.
                self._channel.remove(f"c-{body.call_id}")
                return
        status: CallStatus = "failed" if body.is_error else "done"
        if body.stopped:
            status = "unknown" if known.status == "unknown" else "cancelled"
        elif body.decision == "deny":
            status = "denied"
        elif known.resolved == "abort":
            status = "unknown"
        elif body.is_error and body.text == NOT_RUN:
            status = "not_run"
        self._put(
            turn,
            replace(
                known,
                status=status,
                question=None,
                recovery=None,
                progress=None,
                inputs=(),
                result=body.text[:SHOWN_RESULT_CHARS],
                result_size=len(body.text),
                seconds=body.seconds,
                decision=body.decision or known.decision,
                parts=tuple(ShownPart(part, web_host(part.uri)) for part in body.parts),
                files=body.files,
                nested="done" if known.nested else "",
            ),
        )

    def _show_plan(self, turn: TurnState, body: ToolResult) -> None:
        """Puts the card of the plan where its first call stands, and leaves it there."""
        id, call = f"p-{turn.key}", self._channel.get(f"c-{body.call_id}")
        begins = call is not None and self._channel.get(id) is None
        rank = call.rank if call is not None and begins else None
        self._channel.put(id, turn.slot, Plan(body.plan, True), rank=rank)

    def reset(self, turn: TurnState, message_id: str) -> None:
        """Takes back the calls of one message, those that have their result too."""
        for call_id in turn.drop_calls(message_id):
            self._channel.remove(f"c-{call_id}")

    def end(self, turn: TurnState) -> None:
        """The run has ended: what has no result was stopped, and its plan goes on no more."""
        for call_id in turn.calls:
            call = self.get(call_id)
            if call is not None:
                status: CallStatus = "unknown" if call.status == "unknown" else "cancelled"
                stopped = replace(
                    call, status=status, question=None, recovery=None, progress=None, inputs=()
                )
                self._put(turn, stopped)
        turn.calls.clear()
        id = f"p-{turn.key}"
        plan = self._channel.get(id)
        if plan is not None and isinstance(plan.data, Plan):
            self._channel.put(id, turn.slot, replace(plan.data, is_live=False))

    def show_nested(self, turn: TurnState, call_id: str) -> None:
        """Has a call say how the sub-agent in it is doing: whether it waits for the person."""
        call, inner = self.get(call_id), turn.inner.get(call_id)
        if call is None:
            return
        state: NestedState = "done" if call.nested else ""
        if inner is not None:
            state = "asking" if self.asking(inner) else "working"
        self._put(turn, replace(call, nested=state))

    def _put(self, turn: TurnState, call: Call) -> None:
        self._channel.put(f"c-{call.call_id}", turn.slot, call)

    def _replace(self, call: Call) -> None:
        """The same for a call that is shown, in whatever slot."""
        part = self._channel.get(f"c-{call.call_id}")
        if part is not None:
            self._channel.put(part.id, part.slot, call)

    def _clear(self, call_id: str) -> None:
        for part in list(self._channel.slot(f"c-{call_id}")):
            self._channel.remove(part.id)


def _cut_off(call: Call) -> Call:
    return replace(call, status="unknown", question=None, progress=None, inputs=())


def needed_words(asked: Sequence[Call]) -> str:
    """In which calls a person has to answer; '' for none."""
    names = ", ".join(dict.fromkeys(call.name for call in asked))
    return f"Needs your answer: {names}" if names else ""
