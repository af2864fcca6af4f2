"""What is known of a run, or of a sub-agent's run inside a call, while its events are folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from web.chats.markdown.stream import MarkdownStream
from web.chats.transcript.work_time import WorkTime
from web.harness.values.events import ErrorReport


@dataclass(slots=True, eq=False)
class StreamedText:
    """A text that streams: its blocks lie in `slot` and are named after `prefix`."""

    stream: MarkdownStream
    slot: str
    prefix: str
    thinking: bool
    first: int
    """The rank of its first block."""
    ended: bool = False


@dataclass(slots=True, eq=False)
class TurnState:
    """One run. Its parts lie in `slot`, and the ids of its notices begin with `key`.

    `outer` is the run around that of a sub-agent, which `call_id` is a call of.
    """

    run_id: str
    started: float
    model: str
    slot: str = "log"
    key: str = ""
    call_id: str = ""
    outer: TurnState | None = None
    open: StreamedText | None = None
    open_message: str = ""
    texts: int = 0
    notices: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    """Message id by call id, of the calls without a result."""
    settled: dict[str, str] = field(default_factory=dict)
    """The same of those with a result, of the newest message that has one."""
    inner: dict[str, TurnState] = field(default_factory=dict)
    """By call id, the runs of sub-agents under way."""
    begun: int = 0
    """Runs of sub-agents that have begun."""
    error: ErrorReport | None = None
    taken_back: bool = False
    """What was written last was, and nothing since."""
    stopping: bool = False
    """A person stopped it, and it has no end yet."""
    pausing: bool = False
    """A person paused it, and it does not stand still yet."""
    time: WorkTime = field(init=False)

    def __post_init__(self) -> None:
        self.time = WorkTime(self.started)

    @property
    def root(self) -> TurnState:
        """The run that the person's message began."""
        return self if self.outer is None else self.outer.root

    def settle_call(self, call_id: str) -> None:
        """A call has its result."""
        message_id = self.calls.pop(call_id, "")
        if message_id not in self.settled.values():
            self.settled.clear()
        self.settled[call_id] = message_id

    def drop_calls(self, message_id: str) -> list[str]:
        """Forgets the calls of a message; returns their ids."""
        dropped: list[str] = []
        for calls in (self.calls, self.settled):
            ids = [call_id for call_id, its in calls.items() if its == message_id]
            for call_id in ids:
                del calls[call_id]
            dropped += ids
        for call_id in dropped:
            self.inner.pop(call_id, None)
        return dropped

    def open_calls(self) -> Iterator[str]:
        """Ids of the calls without a result, those of sub-agents too."""
        yield from self.calls
        for inner in self.inner.values():
            yield from inner.open_calls()
