"""One tool call of a run while it is proposed, asked about, run and settled."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from web.harness.agent.nested import Nested
from web.harness.agent.progress import Progress
from web.harness.sessions.journal import CallRecord
from web.harness.tools.tool import Continued, InputAnswer, ReplayPolicy
from web.harness.values.events import Decision, ToolResult
from web.harness.values.messages import JsonObject, TextBlock, ToolResultBlock, ToolUseBlock

NOTED_CHARS = 2_000
"""So much of edited arguments is repeated to the model."""


@dataclass(slots=True)
class Call:
    """What is known of a call; `record` is the part of it that is written down."""

    use: ToolUseBlock
    message_id: str
    replay: ReplayPolicy = "manual"
    refusal: str = ""
    approval: str = ""
    decision: Decision | None = None
    granted: bool = False
    edited: bool = False
    input: JsonObject | None = None
    result: ToolResultBlock | None = None
    seconds: float | None = None
    asked: tuple[str, ...] = ()
    task: asyncio.Task[None] | None = None
    progress: Progress | None = None
    started: float | None = None
    nested: Nested | None = None
    ending: ToolResult | None = None
    """Of a call that is settled, until the loop is told."""
    is_unknown: bool = False
    """Whether nobody knows if it ran."""

    @classmethod
    def of(cls, record: CallRecord) -> Call:
        return cls(
            record.use,
            record.message_id,
            record.replay,
            record.refusal,
            record.approval,
            record.decision,
            record.granted,
            record.edited,
            record.input,
            record.result,
            record.seconds,
            record.asked,
        )

    @property
    def record(self) -> CallRecord:
        return CallRecord(
            self.use,
            self.message_id,
            self.replay,
            self.refusal,
            self.approval,
            self.decision,
            self.granted,
            self.edited,
            self.input,
            self.result,
            self.seconds,
            self.asked,
        )

    @property
    def how_allowed(self) -> Decision | Literal[""]:
        """What a person said that let the call run, '' where nobody was asked."""
        return self.decision or ("allow_chat" if self.granted else "")

    @property
    def is_asking(self) -> bool:
        """Whether it has asked a person what outlives its process, and has no answer yet."""
        return self.input is not None and "answer" not in self.input

    @property
    def continued(self) -> Continued | None:
        """What it goes on from, where it had asked."""
        if self.input is None or "answer" not in self.input:
            return None
        answer = self.input["answer"]
        return Continued(self.input["state"], InputAnswer(answer["action"], answer.get("content")))

    def given(self, answer: InputAnswer) -> None:
        """Takes the answer to what it has asked."""
        told = {"action": answer.action, "content": answer.content}
        self.input = {**(self.input or {}), "answer": told}

    @property
    def stopped_words(self) -> str:
        """Its result where the run is stopped before it has one."""
        if self.is_unknown:
            return (
                "Stopped. The program was interrupted while this was under way: nobody knows "
                "whether it ran."
            )
        has_run = self.task is not None or self.input is not None
        return "Stopped by the person before it ended." if has_run else "Stopped; never ran."


def digest(use: ToolUseBlock, result: ToolResultBlock) -> str:
    """The same for the same call with the same arguments and the same result."""
    told = [use.name, use.arguments, use.malformed, result.is_error]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for block in result.content:
        digest.update(b"\0")
        text = block.text if isinstance(block, TextBlock) else block.sha256
        digest.update(text.encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]


def edit_note(arguments: JsonObject) -> str:
    """Tells the model which arguments a person put in place of its own."""
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > NOTED_CHARS:
        text = f"{text[:NOTED_CHARS]}… ({len(text) - NOTED_CHARS:,} more characters)"
    return f"The person changed the arguments before it ran, to: {text}"


def denial(reason: str) -> str:
    return f"The person refused this call: {reason}" if reason else "The person refused this call."
