"""Folds the events of a chat's runs into parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from web.chats.attachments import shown_attachment
from web.chats.inputs import read_input
from web.chats.kinds import (
    Answer,
    Call,
    CallStatus,
    Failure,
    Foot,
    MarkdownBlock,
    Notice,
    Progress,
    Question,
    ShownPart,
    Status,
    Thinking,
    UserMessage,
)
from web.chats.links import web_host
from web.chats.markdown.blocks import Removed
from web.chats.markdown.stream import MarkdownStream
from web.chats.parts import Channel
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    ErrorReport,
    Event,
    InputAnswered,
    InputRequired,
    Note,
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

SHOWN_RESULT_CHARS = 8_000
"""Of a tool result; the whole is behind a link."""

SETTLE_CHARS = 2_048
"""Text that may wait to be split into blocks, so that little is left to do when it ends."""

MAX_BLOCKS = 1_000_000
"""Of one text; what lies in an answer after it has a higher rank."""

_ENDINGS = {
    "stopped": "Stopped. What was written so far is kept.",
    "max_iterations": "Stopped at the limit of model calls in one turn. Send a message to go on.",
    "max_cost_dollars": "Stopped at the cost limit of one turn.",
    "max_tokens": "The answer reached its length limit and was cut. Ask to continue.",
    "refusal": "The model declined to answer.",
    "empty_answer": "The model sent an empty answer. Try to ask again in other words.",
}


@dataclass(slots=True, eq=False)
class _Text:
    """A text that streams: its blocks lie in `slot` and are named after `prefix`."""

    stream: MarkdownStream
    slot: str
    prefix: str
    thinking: bool
    first: int
    """The rank of its first block."""
    ended: bool = False


@dataclass(slots=True)
class _Turn:
    """What is known of a run while it goes on."""

    run_id: str
    started: float
    model: str
    open: _Text | None = None
    open_message: str = ""
    texts: int = 0
    notices: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    """Message id by call id, of the calls without a result."""
    error: ErrorReport | None = None


class Transcript:
    """The parts of one chat's log and status line, kept in its channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._turns: dict[str, _Turn] = {}
        self._unsettled: list[_Text] = []
        """Texts that stream, and those that have ended but are not split to their end yet."""
        self._status = Status("idle", "")
        self.state_changed: Callable[[], None] | None = None
        """Called when the chat begins to work, to ask, to fail or to rest."""
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
        self._turns[run_id] = _Turn(run_id, at, model)
        shown = tuple(map(shown_attachment, attachments))
        self._channel.put(f"u-{run_id}", "log", UserMessage(text, at, shown))
        self._say(Status("working", "Working", run_id))

    def take_back(self, run_id: str) -> None:
        """Removes all that a run has put into the log."""
        self._drop(f"a-{run_id}-")
        for part in self._channel.slot("log"):
            if part.id.split("-")[1] == run_id:
                self._channel.remove(part.id)

    def settle(self) -> bool:
        """Splits some of what has streamed in since the last time; returns whether more is left."""
        for text in self._unsettled.copy():
            self._settle(text)
        return any(text.stream.pending for text in self._unsettled)

    def fold(self, run_id: str, events: Sequence[Event]) -> None:
        """Takes in the newest events of a run."""
        turn = self._turns.get(run_id)
        if turn is None:
            return
        for event in events:
            self._fold(turn, event)
        # Once for all of them: a settle takes a millisecond or two, and there may be many events.
        if turn.open is not None and turn.open.stream.backlog > SETTLE_CHARS:
            self._settle(turn.open)
        self._channel.touch()

    def _fold(self, turn: _Turn, event: Event) -> None:
        body = event.body
        match body:
            case TextDelta():
                self._write(turn, body.message_id, body.text, thinking=False)
            case ThinkingDelta():
                self._write(turn, body.message_id, body.text, thinking=True)
            case ToolCallDelta():
                self._writing(turn, body)
            case ToolCallStart():
                self._start(turn, body)
            case ToolResult():
                self._result(turn, body)
            case ApprovalRequired():
                self._ask(turn, body)
            case AttemptReset():
                self._reset(turn, body)
            case Waiting():
                self._wait(turn, body, event.at)
            case UsageReport():
                self._close_text(turn)
            case ErrorReport():
                turn.error = body
            case RunResult():
                self._end(turn, body, event.at)
            case ToolProgress():
                self._progress(body)
            case InputRequired():
                self._ask_input(turn, body)
            case InputAnswered():
                self._answered(turn, body)
            case Note():
                self._note(turn, body.text, body.detail)
            case RecoveryRequired() | ContextCondensed():
                self._note(turn, body.type)
            case _:
                assert_never(body)

    def _write(self, turn: _Turn, message_id: str, text: str, *, thinking: bool) -> None:
        if (
            turn.open is None
            or turn.open.thinking is not thinking
            or turn.open_message != message_id
        ):
            into = self._open_text(turn, message_id, thinking)
        else:
            into = turn.open
        into.stream.feed(text)

    def _open_text(self, turn: _Turn, message_id: str, thinking: bool) -> _Text:
        self._close_text(turn)
        self._channel.remove(f"n-{turn.run_id}-wait")
        answer = f"a-{message_id}"
        self._channel.put(answer, "log", Answer())
        turn.texts += 1
        prefix = f"{answer}-{turn.texts}"
        if thinking:
            rank = turn.texts * MAX_BLOCKS
            self._channel.put(prefix, answer, Thinking(busy=True), rank=rank)
        slot = prefix if thinking else answer
        first = 0 if thinking else turn.texts * MAX_BLOCKS
        turn.open = _Text(MarkdownStream(), slot, prefix, thinking, first)
        self._unsettled.append(turn.open)
        turn.open_message = message_id
        self._say_work(turn, "Thinking" if thinking else "Writing")
        return turn.open

    def _close_text(self, turn: _Turn) -> None:
        text, turn.open = turn.open, None
        if text is None:
            return
        text.stream.finish()
        text.ended = True
        self._settle(text)
        if text.thinking:
            self._channel.put(text.prefix, f"a-{turn.open_message}", Thinking(busy=False))

    def _settle(self, text: _Text) -> None:
        """Splits some more of a text: so much at a time that nobody else waits for long."""
        for block in text.stream.settle():
            id = f"{text.prefix}-{block.key}"
            if isinstance(block, Removed):
                self._channel.remove(id)
            else:
                slot = text.slot if block.parent is None else f"{text.prefix}-{block.parent}"
                # Blocks do not come in their order: one that changed again goes to the back.
                number = int(block.key.rpartition("-")[2])
                rank = text.first + number if block.parent is None else number
                self._channel.put(id, slot, MarkdownBlock(block), rank=rank)
        if text.ended and not text.stream.pending and text in self._unsettled:
            self._unsettled.remove(text)

    def _drop(self, prefix: str) -> None:
        """Forgets texts whose parts are taken back."""
        self._unsettled = [text for text in self._unsettled if not text.prefix.startswith(prefix)]

    def _writing(self, turn: _Turn, body: ToolCallDelta) -> None:
        self._close_text(turn)
        known = self._call(body.call_id)
        written = (known.written if known else 0) + len(body.arguments)
        name = body.name or (known.name if known else "")
        turn.calls[body.call_id] = body.message_id
        self._put_call(Call(turn.run_id, body.call_id, name, "writing", written=written))
        self._say_work(turn, f"Preparing {name}" if name else "Preparing a tool")

    def _ask(self, turn: _Turn, body: ApprovalRequired) -> None:
        self._close_text(turn)
        turn.calls[body.call_id] = body.message_id
        self._put_call(
            Call(
                turn.run_id,
                body.call_id,
                body.name,
                "asking",
                body.arguments,
                question=Question(body.key, body.preview, body.always_asks),
                hints=body.hints,
            )
        )
        self._say_work(turn, "")

    def _start(self, turn: _Turn, body: ToolCallStart) -> None:
        self._close_text(turn)
        turn.calls[body.call_id] = body.message_id
        self._put_call(
            Call(
                turn.run_id,
                body.call_id,
                body.name,
                "running",
                body.arguments,
                decision=body.decision,
                edited=body.edited,
                hints=body.hints,
            )
        )
        self._say_work(turn, f"Running {body.name}")

    def _progress(self, body: ToolProgress) -> None:
        call = self._call(body.call_id)
        if call is not None and call.status == "running":
            progress = Progress(body.done, body.total, body.message)
            self._put_call(replace(call, progress=progress))

    def _ask_input(self, turn: _Turn, body: InputRequired) -> None:
        call = self._call(body.call_id)
        if call is not None and call.status == "running":
            asked = read_input(body.key, body.request)
            self._put_call(replace(call, inputs=(*call.inputs, asked)))
        self._say_work(turn, "")

    def _answered(self, turn: _Turn, body: InputAnswered) -> None:
        call = self._call(body.call_id)
        if call is None:
            return
        inputs = tuple(each for each in call.inputs if each.key != body.key)
        answered = call.answered if body.action == "withdrawn" else (*call.answered, body.action)
        self._put_call(replace(call, inputs=inputs, answered=answered))
        self._say_work(turn, f"Running {call.name}")

    def _result(self, turn: _Turn, body: ToolResult) -> None:
        self._close_text(turn)
        known = self._call(body.call_id) or Call(turn.run_id, body.call_id, body.name, "running")
        turn.calls.pop(body.call_id, None)
        status: CallStatus = "failed" if body.is_error else "done"
        if body.stopped:
            status = "cancelled"
        elif body.decision == "deny":
            status = "denied"
        self._put_call(
            replace(
                known,
                status=status,
                question=None,
                progress=None,
                inputs=(),
                result=body.text[:SHOWN_RESULT_CHARS],
                result_size=len(body.text),
                seconds=body.seconds,
                decision=body.decision or known.decision,
                parts=tuple(ShownPart(part, web_host(part.uri)) for part in body.parts),
                files=body.files,
            )
        )
        self._say_work(turn, "Working")

    def _reset(self, turn: _Turn, body: AttemptReset) -> None:
        turn.open = None
        self._drop(f"a-{body.message_id}-")
        self._channel.remove(f"a-{body.message_id}")
        for call_id, message_id in list(turn.calls.items()):
            if message_id == body.message_id:
                del turn.calls[call_id]
                self._channel.remove(f"c-{call_id}")
        self._note(turn, f"Attempt {body.attempt} was dropped and starts again.", body.reason)

    def _wait(self, turn: _Turn, body: Waiting, at: float) -> None:
        text = f"Waiting {body.seconds:.0f} s" if body.seconds >= 1 else "Trying again"
        if body.seconds >= 1:
            notice = Notice(text, body.reason, until=at + body.seconds)
            self._channel.put(f"n-{turn.run_id}-wait", "log", notice)
        self._say(Status("working", text, turn.run_id))

    def _note(self, turn: _Turn, text: str, detail: str = "") -> None:
        turn.notices += 1
        self._channel.put(f"n-{turn.run_id}-{turn.notices}", "log", Notice(text, detail))

    def _end(self, turn: _Turn, body: RunResult, at: float) -> None:
        self._close_text(turn)
        self._channel.remove(f"n-{turn.run_id}-wait")
        for call_id in turn.calls:
            call = self._call(call_id)
            if call is not None:
                self._put_call(
                    replace(call, status="cancelled", question=None, progress=None, inputs=())
                )
        del self._turns[turn.run_id]
        if turn.error is not None:
            error = turn.error
            failure = Failure(turn.run_id, error.code, error.message, error.hint)
            self._channel.put(f"f-{turn.run_id}", "log", failure)
        elif body.reason:
            self._note(turn, _ENDINGS.get(body.reason, body.reason))
        foot = Foot(at - turn.started, body.usage, body.cost, turn.model)
        self._channel.put(f"e-{turn.run_id}", "log", foot)
        if body.status == "failed":
            self._say(Status("failed", "Failed"))
        else:
            self._say(Status("idle", "Stopped" if body.status == "cancelled" else "Done"))

    def _call(self, call_id: str) -> Call | None:
        part = self._channel.get(f"c-{call_id}")
        return part.data if part is not None and isinstance(part.data, Call) else None

    def _put_call(self, call: Call) -> None:
        self._channel.put(f"c-{call.call_id}", "log", call)

    def _say_work(self, turn: _Turn, text: str) -> None:
        """Says what the run does, unless a person has to act first."""
        asked = [call for call in map(self._call, turn.calls) if call is not None and call.waits]
        if asked:
            names = ", ".join(dict.fromkeys(call.name for call in asked))
            self._say(Status("asking", f"Needs your answer: {names}", turn.run_id, len(asked)))
        else:
            self._say(Status("working", text or "Working", turn.run_id))

    def _say(self, status: Status) -> None:
        changed = status.state != self._status.state
        self._status = status
        self._channel.put("status-line", "status", status)
        if changed and self.state_changed is not None:
            self.state_changed()

    @property
    def status(self) -> Status:
        return self._status
