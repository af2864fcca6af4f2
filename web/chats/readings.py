"""What a server gave a person: a resource as it is shown and attached, a prompt as it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from web.harness.mcp.wording import tidy
from web.harness.tools.outputs import MAX_TITLE_CHARS, MAX_URI_CHARS
from web.harness.tools.tool import KeepBlob
from web.harness.values.errors import HarnessError
from web.harness.values.events import ResultPart
from web.harness.values.messages import ResourceBlock
from web.harness.values.text import sayable

if TYPE_CHECKING:
    import mcp_types

SHOWN_CHARS = 100_000
"""Of one text of a resource that is read on the page."""

MAX_MEDIA_TYPE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Material:
    """Texts for the next message, and words about what could not be among them."""

    blocks: tuple[ResourceBlock, ...] = ()
    left_out: tuple[str, ...] = ()
    text: str = ""
    """What the person may send: the message that a prompt ends with."""


async def shown_contents(
    result: mcp_types.ReadResourceResult, keep: KeepBlob
) -> tuple[ResultPart, ...]:
    """The contents as a page shows them; texts are of kind `text`. Data is handed to `keep`."""
    import mcp_types as types

    from web.harness.mcp.results import tool_output

    parts: list[ResultPart] = []
    for each in result.contents:
        if isinstance(each, types.TextResourceContents):
            text, uri, media_type = _said(each)
            parts.append(
                ResultPart(
                    "text", text[:SHOWN_CHARS], uri=uri, media_type=media_type, size=len(text)
                )
            )
        else:
            embedded = types.EmbeddedResource(type="resource", resource=each)
            output = await tool_output(types.CallToolResult(content=[embedded]), keep=keep)
            parts += output.parts
    return tuple(parts)


def attachable(result: mcp_types.ReadResourceResult, name: str, source: str) -> Material:
    """The texts of a resource. Raises HarnessError where it has none."""
    import mcp_types as types

    blocks: list[ResourceBlock] = []
    left_out: list[str] = []
    for each in result.contents:
        if isinstance(each, types.TextResourceContents):
            blocks.append(_block(each, name, source))
        else:
            left_out.append(_not_yet(each.mime_type, str(each.uri)))
    if not blocks:
        raise HarnessError(
            left_out[0] if left_out else "The resource is empty.",
            hint="Nothing was attached.",
            code="invalid_arguments",
        )
    return Material(tuple(blocks), tuple(left_out))


def filled(result: mcp_types.GetPromptResult, name: str, source: str) -> Material:
    """What a prompt brings: its last text of the person to be sent, all before it as attachments.

    Raises HarnessError for one that brings nothing.
    """
    import mcp_types as types

    last = max(
        (
            index
            for index, each in enumerate(result.messages)
            if each.role == "user" and isinstance(each.content, types.TextContent)
        ),
        default=-1,
    )
    text = ""
    blocks: list[ResourceBlock] = []
    left_out: list[str] = []
    for index, message in enumerate(result.messages):
        match message.content:
            case types.TextContent(text=said) if index == last:
                text = sayable(said)
            case types.TextContent(text=said):
                role = " of the assistant" if message.role == "assistant" else ""
                title = f"{name}, message {index + 1}{role}"
                blocks.append(ResourceBlock("", title, "text/plain", sayable(said), source))
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                blocks.append(_block(resource, "", source))
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                left_out.append(_not_yet(resource.mime_type, str(resource.uri)))
            case types.ResourceLink() as link:
                uri = tidy(str(link.uri), MAX_URI_CHARS, one_line=True)
                left_out.append(f"A link to {uri}, which was not followed.")
            case types.ImageContent() | types.AudioContent() as media:
                left_out.append(_not_yet(media.mime_type, ""))
    if not text.strip() and not blocks:
        raise HarnessError(
            left_out[0] if left_out else "The server sent an empty prompt.",
            hint="Nothing was put into your message.",
            code="invalid_arguments",
        )
    return Material(tuple(blocks), tuple(left_out), text)


def words_of(left_out: Sequence[str]) -> str:
    """One line about what was left out, '' for nothing."""
    if not left_out:
        return ""
    more = f" And {len(left_out) - 3} more." if len(left_out) > 3 else ""
    return f"Left out: {' '.join(left_out[:3])}{more}"


def _block(contents: mcp_types.TextResourceContents, name: str, source: str) -> ResourceBlock:
    text, uri, media_type = _said(contents)
    end = tidy(uri.rstrip("/").rpartition("/")[2], MAX_TITLE_CHARS, one_line=True)
    return ResourceBlock(uri, name or end or uri, media_type, text, source)


def _said(contents: mcp_types.TextResourceContents) -> tuple[str, str, str]:
    """Text, address and media type, fit to be shown and sent."""
    return (
        sayable(contents.text),
        tidy(str(contents.uri), MAX_URI_CHARS, one_line=True),
        tidy(contents.mime_type, MAX_MEDIA_TYPE_CHARS, one_line=True),
    )


def _not_yet(media_type: str | None, uri: str) -> str:
    what = tidy(media_type, MAX_MEDIA_TYPE_CHARS, one_line=True) or "Data that is no text"
    place = f" ({tidy(uri, 200, one_line=True)})" if uri else ""
    return f"{what}{place} can be shown but not given to the model yet."
