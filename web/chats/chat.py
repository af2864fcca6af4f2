"""One chat in memory: its record, its parts, its runs and what waits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from web.chats.parts.channel import Channel
from web.chats.parts.command_list import CommandList
from web.chats.parts.kinds import Behind, ChatState, Grant, Head, Queued
from web.chats.parts.offer_kinds import Attachment
from web.chats.records.attachments import PendingAttachment, shown_attachment
from web.chats.records.blobs import BlobStore, InMemoryBlobs
from web.chats.records.block_forms import without_bytes
from web.chats.records.records import UNTITLED, ChatRecord
from web.chats.transcript.asked import AskedQuestions
from web.chats.transcript.spending import Spending
from web.chats.transcript.transcript import Transcript
from web.harness.agent.agent import Agent
from web.harness.builtin.chat_files import ChatFiles
from web.harness.sessions.identity import HarnessIdentity
from web.harness.tools.permissions import Permissions
from web.harness.tools.tool import Blob
from web.harness.values.messages import AttachedBlock, ImageBlock, Message

REMEMBERED_REQUESTS = 1_000


def attachment_part(attachment_id: str) -> str:
    """The id of the part that shows something attached to the next message."""
    return f"at-{attachment_id}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that was sent, and the id of the run that answers it."""

    run_id: str
    text: str
    model: str
    request_id: str
    attachments: tuple[AttachedBlock, ...] = ()
    took: tuple[str, ...] = ()
    """By their ids, what was attached to the chat's next message and went with this one."""
    draft: str = ""
    """The chat's draft that it was written as, where that is not its text."""
    at: float = 0.0
    """When it was sent, in seconds since the epoch; 0 where that is not known."""

    def without_draft(self, record: ChatRecord) -> ChatRecord:
        """A chat's record once this was sent: a draft is none any more, if it was this message."""
        went = record.draft in (self.text, self.draft)
        return replace(record, draft="") if went else record


@dataclass(slots=True, eq=False)
class Chat:
    """`turn` is the one under way; `queue` holds those that wait for it, oldest first.

    `history` is the conversation as far as it is known here: the last settled one, and during a
    run what the agent has added. `requests` remembers turns by the sender's request id.
    """

    identity: HarnessIdentity
    record: ChatRecord
    channel: Channel
    transcript: Transcript
    history: list[Message] = field(default_factory=list)
    turn: Turn | None = None
    elsewhere: Turn | None = None
    """The one that another server runs, or ran until it died."""
    agent: Agent | None = None
    permissions: Permissions | None = None
    """Its agents' permissions, the truth in this process; the first turn reads the session's."""
    queue: list[Turn] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    requests: OrderedDict[str, Turn] = field(default_factory=OrderedDict)
    failed: Turn | None = None
    """The last turn, if it failed or was stopped: it can be tried again."""
    commands: CommandList = field(init=False)
    """What its message box offers after a slash."""
    blobs: BlobStore = field(default_factory=InMemoryBlobs)
    """Pictures and the like that its tools returned or its person attached."""
    asked: AskedQuestions = field(default_factory=AskedQuestions)
    """What its person was asked, whole."""
    spending: Spending = field(default_factory=Spending)
    """What it has used up; as with `permissions`, the first turn reads the session's."""
    attached: dict[str, tuple[AttachedBlock, ...]] = field(default_factory=dict)
    """By run, what came with its message: for the record, as the conversation gets shorter."""
    taken_back: dict[str, Turn] = field(default_factory=dict)
    """By run, messages that waited and were taken back, as far as the journal told of it."""
    files: ChatFiles | None = None
    """Its folder of files, once somebody looked into it; the application makes it."""

    def __post_init__(self) -> None:
        self.commands = CommandList(self.channel)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def key(self) -> tuple[HarnessIdentity, str]:
        return self.identity, self.record.id

    @property
    def state(self) -> ChatState:
        """What it is at, messages that wait included: they are answered by and by."""
        at_work = self.queue and self.run_state in ("idle", "failed")
        return "working" if at_work else self.run_state

    @property
    def run_state(self) -> ChatState:
        """What its last run is at."""
        # Where what happens is shown once it is stored, a turn that was just taken is not yet.
        if self.turn is not None and self.turn.run_id not in self.runs:
            return "working"
        return self.transcript.status.state

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way, here or on another server."""
        return self.turn is not None or self.elsewhere is not None

    @property
    def messages(self) -> list[Message]:
        """The conversation, with what an active run has added so far."""
        return self.agent.memory.get_messages() if self.agent is not None else self.history

    @property
    def title(self) -> str:
        return self.record.title or UNTITLED

    @property
    def is_deleted(self) -> bool:
        """Deleted, and for some seconds it can be brought back."""
        return self.record.deleted_at is not None

    def show_head(self) -> None:
        self.channel.put("head-line", "head", Head(self.title, self.record.model))

    @property
    def pending(self) -> tuple[PendingAttachment, ...]:
        """What is attached to the next message. The record of a chat may still have what went with
        a message whose server was killed then: that goes with no other."""
        went = {id for turn in self.requests.values() for id in turn.took}
        return tuple(each for each in self.record.attachments if each.id not in went)

    def show_attachments(self) -> None:
        """Brings what is attached to the next message up to what is known of it."""
        ids = {attachment_part(each.id) for each in self.pending}
        for part in self.channel.slot("attached"):
            if part.id not in ids:
                self.channel.remove(part.id)
        for each in self.pending:
            shown = Attachment(each.id, shown_attachment(each.block))
            self.channel.put(attachment_part(each.id), "attached", shown)

    def keep_pictures(self, blocks: Iterable[AttachedBlock]) -> None:
        """Has the page show the pictures among what is attached."""
        for block in blocks:
            if isinstance(block, ImageBlock):
                self.blobs.keep(Blob(block.sha256, block.media_type, block.data))

    def keep_attached(self, run_id: str, blocks: Sequence[AttachedBlock]) -> None:
        """Keeps what came with a message for the record; of pictures, what names them."""
        if blocks:
            self.attached[run_id] = tuple(map(without_bytes, blocks))

    @property
    def grants(self) -> list[str]:
        """The tools that a person allowed for this chat, in the order of their names."""
        return self.permissions.grants if self.permissions is not None else []

    def show_grants(self) -> None:
        for tool in self.grants:
            self.channel.put(f"g-{tool}", f"tool-{tool}", Grant(tool))

    def revoke(self, tool: str) -> None:
        """Has a tool ask again, in a run under way too; one that was not allowed is fine."""
        if self.permissions is not None:
            self.permissions.revoke(tool)
        self.channel.remove(f"g-{tool}")

    def remember(self, turn: Turn) -> None:
        self.requests[turn.request_id] = turn
        while len(self.requests) > REMEMBERED_REQUESTS:
            self.requests.popitem(last=False)

    def forget_request(self, run_id: str) -> None:
        """Whatever comes under the request id of this run is another message."""
        for request_id, turn in list(self.requests.items()):
            if turn.run_id == run_id:
                del self.requests[request_id]

    def enqueue(self, turn: Turn, *, at: int | None = None) -> None:
        """Has a turn wait behind all others, or before the one at a place of the queue."""
        rank: float | None = None
        if at is not None and at < len(self.queue):
            parts = [self.channel.get(f"q-{each.run_id}") for each in self.queue[max(at - 1, 0) :]]
            ranks = [part.rank for part in parts if part is not None]
            rank = sum(ranks[:2]) / 2 if at else ranks[0] - 1
        self.queue.insert(len(self.queue) if at is None else at, turn)
        self.channel.put(f"q-{turn.run_id}", "queue", self._queued(turn), rank=rank)

    def show_queue(self) -> None:
        """Says of what waits what it waits for now."""
        for turn in self.queue:
            self.channel.put(f"q-{turn.run_id}", "queue", self._queued(turn))

    def _queued(self, turn: Turn) -> Queued:
        asks = self.transcript.status.state == "asking"
        behind: Behind = "halted" if self.transcript.halted else "asking" if asks else "working"
        return Queued(turn.run_id, turn.text, len(turn.attachments), behind)

    def dequeue(self, run_id: str | None = None) -> Turn | None:
        """Takes the oldest waiting turn, or the one named, out of the queue."""
        for turn in self.queue:
            if run_id is None or turn.run_id == run_id:
                self.queue.remove(turn)
                self.channel.remove(f"q-{turn.run_id}")
                return turn
        return None
