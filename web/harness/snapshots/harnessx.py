"""Snapshots that harnessx wrote, 0.3 (flat configuration) and 0.4 (nested): its version 2.

Its messages are those of the Anthropic API, without ids: each turn here gets a number, and its
messages are counted. What such a snapshot says beyond what this library knows, such as
`lifetime_iterations`, is kept in `metadata` under `harnessx`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from web.harness.snapshots.parts import json_objects, seconds, usage_of
from web.harness.snapshots.snapshot import Snapshot, checked_session_id
from web.harness.tools.pictures import image_block
from web.harness.values.codec import check_conversation
from web.harness.values.config import AgentConfig
from web.harness.values.json_form import Fields, JsonRefused, kind_of
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

VERSION = 2
KEPT = "harnessx"

_MARKS = {"session_id", "messages", "version", "lifetime_iterations"}


def is_harnessx(form: JsonObject) -> bool:
    """Whether a JSON object is a snapshot of harnessx, of whatever version."""
    return "format" not in form and form.keys() >= _MARKS


def read_harnessx(form: JsonObject) -> Snapshot:
    """Raises JsonRefused, ConfigurationError, and SnapshotRefused for an id that is none."""
    fields = Fields(form, "")
    version = fields.whole("version")
    if version != VERSION:
        raise JsonRefused(
            f"It is a snapshot of harnessx in form {version}; this program reads form {VERSION}.",
            code="from_the_future" if version > VERSION else None,
        )
    config = AgentConfig.from_dict(fields.mapping("config"))
    usage = usage_of(fields.mapping("total_usage", {}))
    metadata = dict(fields.mapping("metadata", {}))
    snapshot_id = checked_session_id(fields.text("session_id"))
    messages = _Conversation().read(fields.items("messages"))
    extensions = json_objects(fields.mapping("extensions", {}), "extensions")
    created, updated = seconds(fields, "created_at"), seconds(fields, "updated_at")
    if (rest := fields.rest()) and KEPT not in metadata:
        metadata[KEPT] = rest
    return Snapshot(
        snapshot_id,
        config,
        messages,
        usage,
        config.limits.prices.cost(usage),
        {},
        (),
        json_objects({"metadata": metadata})["metadata"],
        extensions,
        created,
        updated,
    )


class _Conversation:
    """Reads messages one after the other; each gets its id and the one before it as parent."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._turn = 0
        self._index = 0

    def read(self, forms: list[Any]) -> tuple[Message, ...]:
        for at, form in enumerate(forms):
            fields = Fields(form, f"messages[{at}]")
            role = fields.text("role")
            if role not in ("user", "assistant"):
                raise JsonRefused(f"{fields.name('role')} is {kind_of(role)}, which is no role.")
            content = fields.take("content")
            fields.done()
            self._add(role, _blocks(content, fields.name("content")), fields.where)
        check_conversation(self._messages)
        return tuple(self._messages)

    def _add(self, role: str, blocks: list[ContentBlock], where: str) -> None:
        """A message of a user there holds results, or what a person said, or both."""
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        others = [block for block in blocks if not isinstance(block, ToolResultBlock)]
        if results:
            self._append("tool", self._in_order(results, where))
        if role == "assistant":
            self._append("assistant", others)
        elif others or not results:
            self._turn, self._index = self._turn + 1, 0
            self._append("user", others)

    def _append(self, role: Role, blocks: Sequence[ContentBlock]) -> None:
        before = self._messages[-1].id if self._messages else None
        made = Message(f"turn{self._turn}-{self._index}", role, tuple(blocks), before)
        self._messages.append(made)
        self._index += 1

    def _in_order(self, results: list[ToolResultBlock], where: str) -> list[ContentBlock]:
        """The results in the order of the calls."""
        calls = self._messages[-1].tool_uses if self._messages else ()
        by_call = {result.call_id: result for result in results}
        if len(by_call) < len(results) or by_call.keys() != {call.id for call in calls}:
            raise JsonRefused(
                f"{where} holds results of other calls than the answer before it made."
            )
        return [by_call[call.id] for call in calls]


def _blocks(content: Any, where: str) -> list[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(content)]
    if not isinstance(content, list):
        raise JsonRefused(f"{where} is {kind_of(content)} and has to be a text or a list.")
    return [_block(form, f"{where}[{at}]") for at, form in enumerate(content)]


def _block(form: Any, where: str) -> ContentBlock:
    fields = Fields(form, where)
    # Marks of the prompt cache mean nothing in a saved conversation.
    if fields.has("cache_control"):
        fields.take("cache_control")
    kind = fields.text("type")
    block: ContentBlock
    match kind:
        case "text":
            block = TextBlock(fields.text("text"))
        case "thinking":
            block = ThinkingBlock(fields.text("thinking"), fields.text_or_none("signature"))
        case "redacted_thinking":
            block = ThinkingBlock("", fields.text("data"), redacted=True)
        case "tool_use":
            block = ToolUseBlock(fields.text("id"), fields.text("name"), fields.mapping("input"))
        case "tool_result":
            block = _result(fields)
        case "image":
            block = _picture(fields)
        case _:
            raise JsonRefused(f"{fields.name('type')} is {kind_of(kind)}, which is not known here.")
    fields.done()
    return block


def _result(fields: Fields) -> ToolResultBlock:
    content = fields.take("content") if fields.has("content") else ""
    blocks = _blocks(content, fields.name("content"))
    kept = tuple(block for block in blocks if isinstance(block, TextBlock | ImageBlock))
    if len(kept) < len(blocks):
        raise JsonRefused(f"{fields.where} holds what no result holds.")
    return ToolResultBlock(fields.text("tool_use_id"), kept, fields.flag("is_error", False))


def _picture(fields: Fields) -> ImageBlock:
    source = Fields(fields.take("source"), fields.name("source"))
    if (kind := source.text("type")) != "base64":
        raise JsonRefused(f"{source.name('type')} is {kind_of(kind)}; only base64 can be read.")
    source.text("media_type")
    try:
        data = base64.b64decode(source.text("data"), validate=True)
    except (binascii.Error, ValueError):
        raise JsonRefused(f"{source.name('data')} is no base64.") from None
    source.done()
    block = image_block(data)
    if block is None:
        raise JsonRefused(f"{fields.where} is no picture that can be read.")
    return block
