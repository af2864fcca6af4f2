"""The JSON shapes of the API. They check what comes in, make what goes out, and are documented."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from web.chats.parts.kinds import ChatState
from web.harness.values.events import Decision, InputAction

MAX_REASON_CHARS = 10_000


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("has a number that is too large") from None
    return value


RequestId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Arguments = Annotated[dict[str, Any], AfterValidator(_finite)]


RunState = Literal["queued", "running", "asking", "paused", "ended"]

CHAT_STATE_WORDS = (
    "`working`: a run is under way, or messages wait and are answered by and by; `asking`: the run "
    "waits for a person's answer; `paused`: it was paused or cut off, and stands still until it is "
    "resumed or left; `failed`: the last run failed or was cut off, and nothing waits; `idle`: "
    "there is nothing to do."
)
RUN_STATE_WORDS = (
    "`queued`: the message waits for the runs before it; `running`: it is under way; `asking`: it "
    "waits for a person's answer; `paused`: it was paused or cut off, and stands still until it is "
    "resumed or left; `ended`: it has its result, or was taken back while it waited."
)


class Asked(BaseModel):
    """What a program sends: exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Told(BaseModel):
    """What a program gets. More fields may come with a later version."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class NewChat(Asked):
    title: str | None = Field(None, description="Without one, the first message gives it.")
    model: str | None = Field(None, description="One of those offered; else the first of them.")
    system_prompt: str | None = Field(None, description="Instead of the server's own.")
    request_id: RequestId | None = Field(None, description="The same id again: the same chat.")


class LimitChange(Asked):
    """Limits of a chat, from its next message on. Null is the server's; what is left out stays."""

    max_iterations: int | None = Field(None, description="Model calls of one turn.")
    max_cost_dollars: float | None = Field(None, description="Of one turn; needs a known price.")
    max_tokens: int | None = Field(None, description="Of one answer.")
    max_context_tokens: int | None = Field(None, description="Of one model call.")


class ChatChange(Asked):
    """What is left out stays."""

    title: str | None = None
    model: str | None = Field(None, description="Answers from the next message on.")
    system_prompt: str | None = Field(None, description="'' for the server's own.")
    limits: LimitChange | None = None


class Nothing(Asked):
    """An empty object, or no content at all."""


class ApprovalAnswer(Asked):
    decision: Decision
    arguments: Arguments | None = Field(
        None, description="Other arguments than the model's; they are checked first."
    )
    reason: str = Field("", max_length=MAX_REASON_CHARS, description="For the model to read.")


class InputReply(Asked):
    action: InputAction
    content: Arguments | None = Field(
        None, description="The fields of an accepted form, by name; they are checked first."
    )


class Text(Told):
    type: Literal["text"]
    text: str


class ThinkingText(Told):
    type: Literal["thinking"]
    text: str
    redacted: bool


class ToolUse(Told):
    type: Literal["tool_use"]
    id: str
    name: str
    arguments: dict[str, Any]
    malformed: str | None = Field(description="What the model sent where it was no JSON object.")


class Picture(Told):
    """A picture; its bytes are at `/chats/{chat_id}/blobs/{sha256}` while they are kept."""

    type: Literal["image"]
    media_type: str
    sha256: str
    name: str
    width: int
    height: int
    left_out: str = Field(description="Why no model is sent it any more.")


class ToolResultContent(Told):
    type: Literal["tool_result"]
    call_id: str
    content: tuple[Annotated[Text | Picture, Field(discriminator="type")], ...]
    is_error: bool


class AttachedResource(Told):
    """What was attached to a message: a text that somebody else wrote, or the name of a file."""

    type: Literal["resource"]
    uri: str
    name: str
    media_type: str
    text: str
    source: str = Field(description="Who gave it, such as an MCP server.")
    file_bytes: int | None = Field(description="Of a file that is there by its name only.")


Attached = Annotated[AttachedResource | Picture, Field(discriminator="type")]
Content = Annotated[
    Text | ThinkingText | ToolUse | ToolResultContent | AttachedResource | Picture,
    Field(discriminator="type"),
]


class ChatMessage(Told):
    id: str
    parent_id: str | None
    role: Literal["user", "assistant", "tool"]
    content: tuple[Content, ...]


class QueuedMessage(Told):
    run_id: str
    text: str
    attachments: tuple[Attached, ...]


class OpenQuestion(Told):
    """A tool that waits for a person's decision."""

    key: str
    run_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    preview: dict[str, Any] | None
    always_asks: bool = Field(description="`allow_chat` is refused: it asks before each call.")


class OpenInput(Told):
    """What a running tool asks a person for; `request` is that of its `input_required`."""

    key: str
    run_id: str
    call_id: str
    name: str
    request: dict[str, Any]


class OpenRecovery(Told):
    """A call that ran when the server was stopped: a person says what became of it."""

    key: str
    run_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]


class ChatSummary(Told):
    id: str
    title: str
    model: str
    state: ChatState = Field(description=CHAT_STATE_WORDS)
    active_run: str | None = Field(description="The run under way, here or on another server.")
    created_at: float = Field(description="Seconds since the epoch.")
    updated_at: float = Field(description="When the last message was sent.")


class ChatLimitsTold(Told):
    """Limits of the chat's own; null where the server's hold."""

    max_iterations: int | None
    max_cost_dollars: float | None
    max_tokens: int | None
    max_context_tokens: int | None


class UsageTold(Told):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    thinking_tokens: int


class ChatMade(Told):
    id: str
    title: str
    model: str


class ChatWhole(ChatSummary):
    system_prompt: str
    limits: ChatLimitsTold
    turns: int = Field(description="Messages that were answered.")
    usage: UsageTold = Field(description="Tokens of all turns.")
    cost: float | None = Field(description="US dollars of all turns; null where no price is known.")
    messages: tuple[ChatMessage, ...]
    queue: tuple[QueuedMessage, ...] = Field(description="Messages that wait, oldest first.")
    questions: tuple[OpenQuestion, ...]
    inputs: tuple[OpenInput, ...]
    recoveries: tuple[OpenRecovery, ...] = Field(description="Calls of which nobody knows.")


class RunStarted(Told):
    run_id: str
    queued: bool = Field(description="It waits for the run under way to end.")


class RunStatus(Told):
    run_id: str
    chat_id: str
    state: RunState = Field(description=RUN_STATE_WORDS)
    waits_for: Literal["worker", "temporal", "namespace"] | None = Field(
        description="What it goes on with once that is there again: a worker that performs it, or "
        "Temporal, which does not answer or has not the namespace. Nothing is lost meanwhile."
    )
    result: dict[str, Any] | None = Field(description="The data of `run_result` once it ended.")


class Health(Told):
    status: Literal["ok"]
    version: str
    epoch: str = Field(description="Another one means that the server was restarted.")
    models: tuple[str, ...]
    store: str = Field(description="Where chats are kept.")
    chats: int
    running: int = Field(description="Answers that are being written for this person.")


class Failure(Told):
    """The shape of every error."""

    code: str = Field(description="Stable, for programs.")
    message: str = Field(description="What happened.")
    hint: str = Field(description="What to do; may be empty.")
