"""Where a run stands: moved on by outcomes alone, each written down with what it brought."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from web.harness.loop.actions import (
    CallSettled,
    CallsStarted,
    CancelRequested,
    Condensed,
    CondenseFailed,
    ContextFull,
    Decided,
    InputGiven,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Resolved,
    Resumed,
)
from web.harness.loop.machine import apply
from web.harness.loop.state import RunLimits, RunState, start_run
from web.harness.memory.conversation import Conversation
from web.harness.sessions.journal import CallRecord, Recorded, RunJournal, Step, StepKind
from web.harness.values.messages import ContentBlock, JsonObject, Message

_KINDS: dict[type[Outcome], StepKind] = {
    ModelAnswered: "answered",
    ModelFailed: "model_failed",
    ContextFull: "context_full",
    Condensed: "condensed",
    CondenseFailed: "condensed",
    CallsStarted: "calls_started",
    CallSettled: "call_settled",
    Decided: "decided",
    CancelRequested: "cancel_requested",
    Resumed: "resumed",
    Resolved: "resolved",
    InputGiven: "input_answered",
}


class NoJournal:
    """The journal of a run that nobody resumes: it writes nothing, and has nothing to wait for."""

    def write(self, step: Step, state: RunState) -> None:
        """Nothing is written."""

    async def settled(self) -> None:
        """All that was handed over is where it will stay."""


class Control:
    """The state of one run, its conversation and its journal, which always change together.

    Whatever an outcome brings is in the events of the run before it: where a process ends between
    the two, what was shown is shown again and nothing is kept that nobody saw.
    """

    def __init__(
        self, state: RunState, conversation: Conversation, journal: RunJournal | None
    ) -> None:
        self.state = state
        self.conversation = conversation
        self.is_durable = journal is not None
        self._journal: RunJournal = journal if journal is not None else NoJournal()

    @classmethod
    def begin(
        cls,
        run_id: str,
        content: tuple[ContentBlock, ...],
        limits: RunLimits,
        conversation: Conversation,
        journal: RunJournal | None,
    ) -> Control:
        """A run that begins with the person's message."""
        control = cls(start_run(run_id, limits), conversation, journal)
        first = Message(control.state.last_message_id, "user", content, conversation.last_id)
        conversation.append(first)
        control._write(Step("begun", messages=(first,)))
        return control

    @classmethod
    def take_up(
        cls, recorded: Recorded, conversation: Conversation, journal: RunJournal | None
    ) -> Control:
        """A run that was written down; the conversation is as it was before the run, or after."""
        if recorded.replaced is not None:
            conversation.replace(recorded.replaced)
        known = {message.id for message in conversation.get_messages()}
        for message in recorded.messages:
            if message.id not in known:
                conversation.append(message)
        return cls(recorded.state, conversation, journal)

    def apply(
        self,
        outcome: Outcome,
        *,
        message: Callable[[], Message | None] = lambda: None,
        replaced: Sequence[Message] | None = None,
        calls: tuple[CallRecord, ...] = (),
        about: JsonObject | None = None,
    ) -> None:
        """Moves the state on, and adds `message` where the loop says that one was added."""
        known = self.state.message_count
        self.state = apply(self.state, outcome)
        added: tuple[Message, ...] = ()
        if self.state.message_count > known:
            new = message()
            if new is None or new.id != self.state.last_message_id:
                raise RuntimeError("The loop wrote a message that was not given.")
            self.conversation.append(new)
            added = (new,)
        whole = tuple(replaced) if replaced is not None else None
        self._write(Step(_KINDS[type(outcome)], outcome, added, whole, calls, about or {}))

    def note(
        self, kind: StepKind, calls: tuple[CallRecord, ...] = (), about: JsonObject | None = None
    ) -> None:
        """Writes down what does not move the state."""
        self._write(Step(kind, calls=calls, about=about or {}))

    @property
    def has_ended(self) -> bool:
        """Whether it has its result, and writes nothing any more."""
        return self.state.ending is not None

    async def settled(self) -> None:
        """Waits until all is committed. Raises LeaseLost and StoreError."""
        await self._journal.settled()

    def let_go(self) -> None:
        """Writes nothing more: the run is left as it is, for another process to go on with."""
        self._journal = NoJournal()

    def _write(self, step: Step) -> None:
        self._journal.write(step, self.state)
