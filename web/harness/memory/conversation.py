"""The messages of one conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from web.harness.memory.condensing import KEPT_ROUNDS, clear_results
from web.harness.memory.summaries import as_sent
from web.harness.values.codec import check_conversation
from web.harness.values.errors import AgentBusy, NotFound
from web.harness.values.json_form import JsonRefused, kind_of
from web.harness.values.message_view import MessageView
from web.harness.values.messages import ImageBlock, Message
from web.harness.values.pictures import has_pictures, leave_out
from web.harness.values.tokens import message_tokens

KEPT_PICTURE_BYTES = 64_000_000
"""Of all pictures of a conversation; models are sent less. Older ones are named, not kept."""


class Conversation:
    """Messages in order, each one the child of the message before it.

    It holds what a model is sent. Where that gets too long, older messages are summarised and gone
    from here, except for pinned ones.
    """

    def __init__(self, messages: Iterable[Message] = (), *, pinned: Iterable[str] = ()) -> None:
        self._messages = list(messages)
        self._pinned = set(pinned)
        self._counted = 0
        self._tokens = 0
        self._sent: list[Message] | None = None
        _check_kind(self._messages)
        self.in_use = False
        """Whether a run writes to it; then nobody else replaces its messages."""

    def get_messages(self) -> list[Message]:
        """A list of its own; the messages themselves are immutable."""
        return list(self._messages)

    @property
    def sent(self) -> Sequence[Message]:
        """The messages as a model is sent them now; see `as_sent`."""
        if self._sent is None:
            self._sent = list(as_sent(self._messages))
        return MessageView(self._sent)

    def set_messages(self, messages: Iterable[Message]) -> None:
        """Replaces the whole conversation. Pins of messages that are not in it are gone.

        Raises JsonRefused for what no model can be sent (see `check_conversation`), and AgentBusy
        while a run is under way; nothing is changed then.
        """
        if self.in_use:
            raise AgentBusy(
                "This conversation has a run under way; its messages cannot be replaced now.",
                hint="Do it when the run has ended.",
            )
        given = list(messages) if isinstance(messages, Iterable) else [messages]
        _check_kind(given)
        check_conversation(given)
        self.replace(given)

    def replace(self, messages: Iterable[Message]) -> None:
        """The same for the run that writes to it, whose messages are as they must be."""
        self._messages = list(messages)
        self._counted = self._tokens = 0
        self._sent = None
        if self._pinned:
            self._pinned &= {message.id for message in self._messages}

    def append(self, message: Message) -> None:
        """Adds a message. Its pictures stay, those before them as far as they fit beside it."""
        self._messages.append(message)
        if self._sent is not None and len(self._messages) > 2:
            self._sent.append(message)
        else:
            self._sent = None
        if has_pictures(message):
            self._messages = list(leave_out(self._messages, _Room()))
            self._counted = self._tokens = 0
            self._sent = None

    def pin(self, message_id: str) -> None:
        """Keeps a message as it is when older ones are summarised or cleared, with the calls and
        results that belong to it. Pinning twice is fine. Raises NotFound."""
        if all(message.id != message_id for message in self._messages):
            raise NotFound("There is no such message in this conversation.")
        self._pinned.add(message_id)

    def unpin(self, message_id: str) -> None:
        """Lets a message go with the others again; one that is not pinned is fine."""
        self._pinned.discard(message_id)

    @property
    def pinned(self) -> frozenset[str]:
        """The ids of the pinned messages."""
        return frozenset(self._pinned)

    def prune_tool_results(self, *, keep_rounds: int = KEPT_ROUNDS) -> int:
        """Clears results of tools, but for the newest rounds and pinned ones; returns how many.

        A line of words stands for each; small ones stay. The calls stay with their results. This
        is what is done first, by itself, when a conversation gets too long for the model.
        """
        if keep_rounds < 0:
            raise ValueError("keep_rounds is 0 or more")
        cleared = clear_results(self._messages, keep_rounds=keep_rounds, pinned=self._pinned)
        if cleared.results:
            self.replace(cleared.messages)
        return cleared.results

    @property
    def tokens(self) -> int:
        """An estimate of what all messages take; each is counted once."""
        self._tokens += sum(map(message_tokens, self._messages[self._counted :]))
        self._counted = len(self._messages)
        return self._tokens

    @property
    def uncounted(self) -> int:
        """How many messages `tokens` counts when it is asked for next."""
        return len(self._messages) - self._counted

    @property
    def last_id(self) -> str | None:
        return self._messages[-1].id if self._messages else None

    @property
    def newest(self) -> Message | None:
        return self._messages[-1] if self._messages else None

    def __len__(self) -> int:
        return len(self._messages)


def _check_kind(messages: Sequence[object]) -> None:
    """Raises JsonRefused for what is no message: a dictionary becomes one by message_from_json."""
    for at, message in enumerate(messages):
        if not isinstance(message, Message):
            raise JsonRefused(
                f"messages[{at}] is {kind_of(message)} and has to be a Message; "
                "message_from_json makes one of a saved one."
            )


class _Room:
    """Says which pictures have none left, the newest first."""

    def __init__(self) -> None:
        self._total = 0

    def __call__(self, picture: ImageBlock) -> str:
        self._total += len(picture.data)
        return "newer ones took its place" if self._total > KEPT_PICTURE_BYTES else ""
