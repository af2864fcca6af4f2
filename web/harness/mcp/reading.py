"""Reading what a server offers beside its tools: resources, prompts, completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from web.harness.mcp.mending import MAX_COMPLETIONS
from web.harness.mcp.results import MAX_CONTENTS, MAX_TEXT_CHARS
from web.harness.mcp.wording import tidy
from web.harness.values.errors import ToolError

if TYPE_CHECKING:
    from web.harness.mcp.session import Session

MAX_BLOB_CHARS = 12_000_000
"""Of base64, of one read; what is more is left out, and said to be."""
MAX_COMPLETION_CHARS = 1_000
COMPLETE_SECONDS = 5.0

_NOT_FOUND = frozenset({types.INVALID_PARAMS, -32002})
"""What the newer protocol and the older one answer for a resource that is not there."""


async def read_resource(session: Session, uri: str) -> types.ReadResourceResult:
    """At most `MAX_CONTENTS` contents with `MAX_TEXT_CHARS` of text and `MAX_BLOB_CHARS` of data.

    A content that is cut or left out says so in text. Raises ToolError in words.
    """
    if session.client.server_capabilities.resources is None:
        raise ToolError("This server has no resources.")
    try:
        result = await session.request(
            f"the resource '{uri}'", lambda: session.client.read_resource(uri)
        )
    except ToolError as error:
        if _code_of(error) in _NOT_FOUND:
            raise ToolError(f"The server has no resource {uri}.") from error
        raise
    return result.model_copy(update={"contents": _capped(result.contents)})


async def get_prompt(
    session: Session, name: str, arguments: Mapping[str, str]
) -> types.GetPromptResult:
    """At most `MAX_CONTENTS` messages with `MAX_TEXT_CHARS` of text. Raises ToolError in words."""
    if session.client.server_capabilities.prompts is None:
        raise ToolError("This server has no prompts.")
    result = await session.request(
        f"the prompt '{name}'", lambda: session.client.get_prompt(name, dict(arguments))
    )
    left = MAX_TEXT_CHARS
    messages = []
    for message in result.messages[:MAX_CONTENTS]:
        if isinstance(message.content, types.TextContent):
            text = _cut(message.content.text, left)
            left = max(0, left - len(text))
            content = message.content.model_copy(update={"text": text})
            message = message.model_copy(update={"content": content})
        messages.append(message)
    return result.model_copy(update={"messages": messages})


async def complete(
    session: Session,
    reference: types.PromptReference | types.ResourceTemplateReference,
    argument: str,
    value: str,
    others: Mapping[str, str],
) -> tuple[str, ...]:
    """At most `MAX_COMPLETIONS` of one line each; none where the server cannot tell in time."""
    if session.client.server_capabilities.completions is None:
        return ()
    asked = {"name": argument, "value": value}
    try:
        with anyio.fail_after(COMPLETE_SECONDS):
            result = await session.client.complete(reference, asked, dict(others) or None)
    except (MCPError, ValidationError, TimeoutError):
        return ()
    values = result.completion.values[:MAX_COMPLETIONS]
    lines = (tidy(each, MAX_COMPLETION_CHARS, one_line=True) for each in values)
    return tuple(dict.fromkeys(line for line in lines if line))


def _code_of(error: ToolError) -> int | None:
    cause = error.__cause__
    return cause.code if isinstance(cause, MCPError) else None


def _capped(
    contents: list[types.TextResourceContents | types.BlobResourceContents],
) -> list[types.TextResourceContents | types.BlobResourceContents]:
    text_left, data_left = MAX_TEXT_CHARS, MAX_BLOB_CHARS
    kept: list[types.TextResourceContents | types.BlobResourceContents] = []
    for each in contents[:MAX_CONTENTS]:
        if isinstance(each, types.TextResourceContents):
            text = _cut(each.text, text_left)
            text_left = max(0, text_left - len(text))
            kept.append(each.model_copy(update={"text": text}))
        elif len(each.blob) <= data_left:
            data_left -= len(each.blob)
            kept.append(each)
        else:
            words = f"[{len(each.blob) * 3 // 4:,} bytes of data were left out: too much.]"
            kept.append(
                types.TextResourceContents(uri=each.uri, mime_type="text/plain", text=words)
            )
    if len(contents) > MAX_CONTENTS:
        words = f"[{len(contents) - MAX_CONTENTS:,} more parts were left out.]"
        kept.append(types.TextResourceContents(uri=contents[0].uri, text=words))
    return kept


def _cut(text: str, left: int) -> str:
    if len(text) <= left:
        return text
    return f"{text[:left]}\n[Cut here: only {MAX_TEXT_CHARS:,} characters were read.]"
