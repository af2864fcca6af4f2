"""Texts of answers as they stream in: split into blocks, so much at a time."""

from __future__ import annotations

from web.chats.markdown.blocks import Removed
from web.chats.markdown.stream import MarkdownStream
from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Answer, MarkdownBlock, Thinking
from web.chats.transcript.turn_state import StreamedText, TurnState

SETTLE_CHARS = 2_048
"""Text that may wait to be split into blocks, so that little is left to do when it ends."""

MAX_BLOCKS = 1_000_000
"""Of one text; what lies in an answer after it has a higher rank."""


class StreamedTexts:
    """The texts of one chat that stream, or have ended and are not split to their end yet."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._unsettled: list[StreamedText] = []

    def write(self, turn: TurnState, message_id: str, text: str, *, thinking: bool) -> bool:
        """Adds to the text that is open, or opens another; returns whether it opened one."""
        opens = (
            turn.open is None
            or turn.open.thinking is not thinking
            or turn.open_message != message_id
        )
        into = self._open(turn, message_id, thinking) if opens else turn.open
        if into is not None:
            into.stream.feed(text)
        return opens

    def close(self, turn: TurnState) -> None:
        """Ends the text that is open, if there is one."""
        text, turn.open = turn.open, None
        if text is None:
            return
        text.stream.finish()
        text.ended = True
        self._settle(text)
        if text.thinking:
            self._channel.put(text.prefix, f"a-{turn.open_message}", Thinking(busy=False))

    def put(self, part_id: str, text: str) -> None:
        """Puts a text that is whole into the slot of a part."""
        added = StreamedText(MarkdownStream(), part_id, part_id, thinking=False, first=0)
        added.stream.feed(text)
        added.stream.finish()
        added.ended = True
        self._unsettled.append(added)
        self._settle(added)

    def settle(self) -> bool:
        """Splits some of what has streamed in since the last time; returns whether more is left."""
        for text in self._unsettled.copy():
            self._settle(text)
        return any(text.stream.pending for text in self._unsettled)

    def catch_up(self, turn: TurnState) -> None:
        """Splits some of the open texts of a run where a great deal waits."""
        if turn.open is not None and turn.open.stream.backlog > SETTLE_CHARS:
            self._settle(turn.open)
        for inner in turn.inner.values():
            self.catch_up(inner)

    def drop(self, prefix: str) -> None:
        """Forgets texts whose parts are taken back."""
        self._unsettled = [text for text in self._unsettled if not text.prefix.startswith(prefix)]

    def _open(self, turn: TurnState, message_id: str, thinking: bool) -> StreamedText:
        self.close(turn)
        answer = f"a-{message_id}"
        self._channel.put(answer, turn.slot, Answer())
        turn.texts += 1
        prefix = f"{answer}-{turn.texts}"
        rank = turn.texts * MAX_BLOCKS
        if thinking:
            self._channel.put(prefix, answer, Thinking(busy=True), rank=rank)
        slot, first = (prefix, 0) if thinking else (answer, rank)
        turn.open = StreamedText(MarkdownStream(), slot, prefix, thinking, first)
        turn.open_message = message_id
        self._unsettled.append(turn.open)
        return turn.open

    def _settle(self, text: StreamedText) -> None:
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
