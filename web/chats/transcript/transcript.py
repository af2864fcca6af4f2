"""Folds the events of a chat's runs into parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from web.chats.parts.channel import Channel
from web.chats.parts.condensed_kinds import Condensed
from web.chats.parts.halted_kinds import Halted, HaltedWhy
from web.chats.parts.kinds import Call, Failure, Foot, Notice, Status, UserMessage
from web.chats.records.attachments import shown_attachment
from web.chats.transcript.notes import Notes
from web.chats.transcript.run_words import ending
from web.chats.transcript.shown_calls import ShownCalls, needed_words
from web.chats.transcript.streamed_texts import StreamedTexts
from web.chats.transcript.turn_state import TurnState
from web.harness.agent.run import INTERRUPTED, PAUSED
from web.harness.runtime.backend import Missing
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    Event,
    EventBody,
    InputAnswered,
    InputRequired,
    NestedEvent,
    Note,
    RecoveryAnswered,
    RecoveryRequired,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    ToolResult,
    UsageReport,
    Waiting,
)
from web.harness.values.messages import AttachedBlock

ALONE = "No worker is there; the answer goes on when one is."

UNREACHABLE = "Temporal does not answer; the answer goes on when it does. Nothing is lost."

NO_NAMESPACE = "Temporal has not the namespace; the answer goes on once it has. Nothing is lost."

_MISSING = {
    "worker": (ALONE, "Waiting for a worker"),
    "temporal": (UNREACHABLE, "Waiting for Temporal"),
    "namespace": (NO_NAMESPACE, "Waiting for Temporal"),
}


class Transcript:
    """The parts of one chat's log and status line, kept in its channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._turns: dict[str, TurnState] = {}
        self._texts = StreamedTexts(channel)
        self._calls = ShownCalls(channel)
        self._notes = Notes(channel)
        self._status = Status("idle", "")
        self._halted: dict[str, HaltedWhy] = {}
        self._missing: dict[str, Missing] = {}
        self.state_changed: Callable[[], None] | None = None
        """Called when the chat begins to work, to ask, to fail or to rest."""
        self.written_down = False
        """Whether its runs are written down step by step: they can be paused and looked at."""
        channel.settle = self.settle
        channel.put("status-line", "status", self._status)

    def begin(
        self,
        run_id: str,
        text: str,
        at: float,
        model: str,
        attachments: Sequence[AttachedBlock] = (),
    ) -> None:
        """A turn starts with the person's message."""
        self._turns[run_id] = TurnState(run_id, at, model, key=run_id)
        shown = tuple(map(shown_attachment, attachments))
        self._channel.put(f"u-{run_id}", "log", UserMessage(text, at, shown))
        self._say(Status("working", "Working", run_id))

    def take_back(self, run_id: str) -> None:
        """Removes all that a run has put into the log."""
        self._turns.pop(run_id, None)
        self._halted.pop(run_id, None)
        self._missing.pop(run_id, None)
        self._texts.drop(f"a-{run_id}-")
        self._texts.drop(f"s-{run_id}-")
        for part in self._channel.slot("log"):
            if part.id.split("-")[1] == run_id:
                self._channel.remove(part.id)

    def halt(self, run_id: str, why: HaltedWhy, words: str = "") -> None:
        """Shows that a run stands still until a person says how it goes on.

        Its next event, from whatever server, takes that back. One that has ended is fine.
        """
        turn = self._turns.get(run_id)
        if turn is None:
            return
        self._texts.close(turn)
        self._channel.remove(f"n-{turn.key}-wait")
        self.stand_alone(run_id, "")
        self._calls.halt(turn)
        self._halted[run_id] = why
        asked = self._calls.asking(turn)
        self._channel.put(f"h-{run_id}", "log", Halted(run_id, why, words, len(asked)))
        self._say_halted(why, words, asked)

    def go_on(self, run_id: str) -> None:
        """Takes back that a run stands still, or is about to: it is performed again, and may only
        wait."""
        turn, stood = self._turns.get(run_id), self._halted.pop(run_id, None) is not None
        if turn is not None and (stood or turn.pausing):
            turn.pausing = False
            self._channel.remove(f"h-{run_id}")
            self._say_work(turn, "Working")

    def stand_alone(self, run_id: str, missing: Missing) -> None:
        """Shows what is missing for a run to go on, or takes that back; its next event shows that
        a worker is there. One that has ended is fine."""
        turn = self._turns.get(run_id)
        if turn is None or turn.stopping or missing == self._missing.get(run_id, ""):
            return
        if not missing:
            self._be_performed(turn)
            return
        self._missing[run_id] = missing
        words, doing = _MISSING[missing]
        self._channel.put(f"n-{turn.key}-alone", "log", Notice(words))
        self._say_work(turn, doing)

    def stopping(self, run_id: str, *, pauses: bool = False) -> None:
        """Shows that a person stopped a run, until it has its end, or with `pauses` that it comes
        to a pause, until it stands still; one that has ended or stands still is fine."""
        turn = self._turns.get(run_id)
        if turn is not None and run_id not in self._halted:
            if not pauses:
                self.stand_alone(run_id, "")
            turn.stopping, turn.pausing = turn.stopping or not pauses, pauses
            self._say_work(turn, "")

    def missing(self, run_id: str) -> Missing:
        """What a run waits for; see `stand_alone`."""
        return self._missing.get(run_id, "")

    def settle(self) -> bool:
        """Splits some of what has streamed in since the last time; returns whether more is left."""
        return self._texts.settle()

    def fold(self, run_id: str, events: Sequence[Event]) -> None:
        """Takes in the newest events of a run."""
        turn = self._turns.get(run_id)
        if turn is None:
            return
        if events and run_id in self._halted:
            self.go_on(run_id)
        missing = self._missing.get(run_id)
        if events and missing and (missing == "worker" or isinstance(events[-1].body, RunResult)):
            self._be_performed(turn)
        for event in events:
            self._fold(turn, event.body, event.at)
        # Once for all of them: a settle takes a millisecond or two, and there may be many events.
        self._texts.catch_up(turn)
        self._channel.touch()

    def _be_performed(self, turn: TurnState) -> None:
        self._missing.pop(turn.run_id, None)
        self._channel.remove(f"n-{turn.key}-alone")
        self._say_work(turn, "Working")

    def _fold(self, turn: TurnState, body: EventBody, at: float) -> None:
        turn.time.take(body, at)
        self._take(turn, body, at)
        turn.time.waits = self._calls.only_wait(turn)

    def _take(self, turn: TurnState, body: EventBody, at: float) -> None:
        match body:
            case TextDelta():
                self._write(turn, body.message_id, body.text, thinking=False)
            case ThinkingDelta():
                self._write(turn, body.message_id, body.text, thinking=True)
            case NestedEvent():
                self._fold_inner(turn, body, at)
            case ToolProgress():
                self._calls.progress(turn, body)
            case (
                ToolCallDelta()
                | ToolCallStart()
                | ToolResult()
                | ApprovalRequired()
                | InputRequired()
                | InputAnswered()
            ):
                self._fold_call(turn, body)
            case AttemptReset():
                self._reset(turn, body)
            case Waiting():
                self._wait(turn, body, at)
            case UsageReport():
                self._texts.close(turn)
                if turn.outer is not None:
                    turn.model = body.model
            case ErrorReport():
                turn.error = body
            case RunResult():
                self._end(turn, body, at)
            case Note():
                self._notes.put(turn, body.text, body.detail)
            case ContextCondensed():
                self._condensed(turn, body)
            case RecoveryRequired():
                self._recover(turn, body)
            case RecoveryAnswered():
                self._calls.recovered(turn, body)
                self._say_work(turn, "Working")
            case _:
                assert_never(body)

    def _fold_call(
        self,
        turn: TurnState,
        body: ToolCallDelta
        | ToolCallStart
        | ToolResult
        | ApprovalRequired
        | InputRequired
        | InputAnswered,
    ) -> None:
        if not isinstance(body, InputRequired | InputAnswered):
            self._texts.close(turn)
        match body:
            case ToolCallDelta():
                name = self._calls.writing(turn, body)
                self._say_work(turn, f"Preparing {name}" if name else "Preparing a tool")
            case ToolCallStart():
                self._begin_anew(turn, body.call_id)
                self._calls.start(turn, body)
                self._say_work(turn, f"Running {body.name}")
            case ToolResult():
                if (inner := turn.inner.get(body.call_id)) is not None:
                    self._end_inner(inner)
                self._calls.result(turn, body)
                self._say_work(turn, "Working")
            case ApprovalRequired():
                self._calls.ask(turn, body)
                self._say_work(turn, "")
            case InputRequired():
                self._calls.ask_input(turn, body)
                self._say_work(turn, "")
            case InputAnswered():
                if name := self._calls.answered(turn, body):
                    self._say_work(turn, f"Running {name}")

    def _recover(self, turn: TurnState, body: RecoveryRequired) -> None:
        self._texts.close(turn)
        if (inner := turn.inner.get(body.call_id)) is not None:
            self._end_inner(inner)
        self._calls.recover(turn, body)
        self._say_work(turn, "")

    def _begin_anew(self, turn: TurnState, call_id: str) -> None:
        """A call starts: if it had before the server was stopped, its sub-agent begins again."""
        call, inner = self._calls.get(call_id), turn.inner.pop(call_id, None)
        if inner is not None:
            self._close(inner)
        if call is None or not call.nested:
            return
        self._texts.drop(f"a-{call_id}-")
        self._texts.drop(f"s-{call_id}-")

    def _fold_inner(self, turn: TurnState, body: NestedEvent, at: float) -> None:
        """Something happened in a sub-agent: it is shown inside the call that started it."""
        inner = turn.inner.get(body.call_id)
        if inner is None:
            if body.call_id not in turn.calls:
                return
            turn.begun += 1
            key = f"{body.call_id}-i{turn.begun}"
            inner = TurnState(
                turn.run_id, at, turn.model, f"c-{body.call_id}", key, body.call_id, turn
            )
            turn.inner[body.call_id] = inner
            self._calls.show_nested(turn, body.call_id)
        self._fold(inner, body.body, at)

    def _write(self, turn: TurnState, message_id: str, text: str, *, thinking: bool) -> None:
        turn.taken_back = False
        if self._texts.write(turn, message_id, text, thinking=thinking):
            self._channel.remove(f"n-{turn.key}-wait")
            self._say_work(turn, "Thinking" if thinking else "Writing")

    def _reset(self, turn: TurnState, body: AttemptReset) -> None:
        turn.open, turn.taken_back = None, True
        self._channel.remove(f"n-{turn.key}-wait")
        self._texts.drop(f"a-{body.message_id}-")
        self._channel.remove(f"a-{body.message_id}")
        self._calls.reset(turn, body.message_id)
        # What stood still says so on its card, and with the note with which it goes on.
        if body.reason not in (PAUSED, INTERRUPTED):
            self._notes.put(
                turn, f"Attempt {body.attempt} was dropped and starts again.", body.reason
            )
        self._notes.tell_once(turn)
        # Its questions are gone with it.
        self._say_work(turn, "Working")

    def _condensed(self, turn: TurnState, body: ContextCondensed) -> None:
        turn.notices += 1
        part_id = f"s-{turn.key}-{turn.notices}"
        numbers = (body.cleared, body.summarised, body.dropped, body.shortened)
        self._channel.put(part_id, turn.slot, Condensed(body.before, body.after, *numbers))
        self._texts.put(part_id, body.summary)

    def _wait(self, turn: TurnState, body: Waiting, at: float) -> None:
        if body.on == "summary":
            self._say_work(turn, "Summarising earlier messages")
            return
        text = f"Waiting {body.seconds:.0f} s" if body.seconds >= 1 else "Trying again"
        if body.seconds >= 1:
            notice = Notice(text, body.reason, until=at + body.seconds)
            self._channel.put(f"n-{turn.key}-wait", turn.slot, notice)
        self._say_work(turn, text)

    def _end(self, turn: TurnState, body: RunResult, at: float) -> None:
        done = bool(turn.calls or turn.settled)
        self._close(turn)
        error = turn.error
        if error is not None and turn.outer is None:
            failure = Failure(turn.run_id, error.code, error.message, error.hint)
            self._channel.put(f"f-{turn.key}", turn.slot, failure)
        elif error is not None:
            self._notes.put(turn, f"Failed: {error.message}", error.hint)
        elif body.reason:
            kept = {"written": turn.texts > 0, "done": done, "taken_back": turn.taken_back}
            self._notes.put(turn, ending(body.reason, **kept))
        steps_of = turn.run_id if self.written_down and turn.outer is None else ""
        still = turn.time.still
        worked = max(0.0, at - turn.started - still)
        foot = Foot(worked, body.usage, body.cost, turn.model, steps_of, still)
        self._channel.put(f"e-{turn.key}", turn.slot, foot)
        if turn.outer is not None:
            self._end_inner(turn)
            return
        del self._turns[turn.run_id]
        if body.status == "failed":
            self._say(Status("failed", "Failed"))
        else:
            self._say(Status("idle", "Stopped" if body.status == "cancelled" else "Done"))

    def _close(self, turn: TurnState) -> None:
        """Settles all that a run has open, and what is open in the runs inside it."""
        for inner in list(turn.inner.values()):
            self._end_inner(inner)
        self._texts.close(turn)
        self._channel.remove(f"n-{turn.key}-wait")
        self._calls.end(turn)

    def _end_inner(self, inner: TurnState) -> None:
        """The run of a sub-agent is over, or is not heard of any more: its call was stopped."""
        self._close(inner)
        if inner.outer is not None:
            inner.outer.inner.pop(inner.call_id, None)
            self._calls.show_nested(inner.outer, inner.call_id)

    def _say_work(self, turn: TurnState, text: str) -> None:
        """Says what the run does, unless a person has to act first."""
        each = turn
        while each.outer is not None:
            call = self._calls.get(each.call_id)
            text = f"{call.name if call else 'Sub-agent'}: {text or 'Working'}"
            self._calls.show_nested(each.outer, each.call_id)
            each = each.outer
        asked = self._calls.asking(each)
        if each.stopping or each.pausing:
            text, asked = "Stopping" if each.stopping else "Pausing", []
        if asked:
            words = needed_words(asked)
            self._say(Status("asking", words, each.run_id, len(asked), self.written_down))
        else:
            self._say(Status("working", text or "Working", each.run_id, pauses=self.written_down))

    def _say_halted(self, why: HaltedWhy, words: str, asked: Sequence[Call]) -> None:
        """It is left by its card and not stopped."""
        if why == "paused":
            self._say(Status("paused", "Paused", questions=len(asked)))
        else:
            words = words or needed_words(asked) or "The server was stopped: shall it go on?"
            self._say(Status("asking", words, questions=len(asked) + 1))

    def _say(self, status: Status) -> None:
        changed = status.state != self._status.state
        self._status = status
        self._channel.put("status-line", "status", status)
        if changed and self.state_changed is not None:
            self.state_changed()

    def is_open(self, run_id: str) -> bool:
        """Whether a run is shown that has no result yet."""
        return run_id in self._turns

    @property
    def halted(self) -> Mapping[str, HaltedWhy]:
        """The runs that stand still, by their ids; see `halt`."""
        return self._halted

    @property
    def status(self) -> Status:
        return self._status
