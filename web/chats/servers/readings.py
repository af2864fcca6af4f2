"""What a server gave a person: a resource as it is shown and attached, a prompt as it is used."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from web.harness.mcp.wording import tidy
from web.harness.tools.outputs import MAX_TITLE_CHARS, MAX_URI_CHARS
from web.harness.tools.pictures import image_block, is_too_large
from web.harness.tools.tool import KeepBlob
from web.harness.values.errors import HarnessError
from web.harness.values.events import ResultPart
from web.harness.values.messages import AttachedBlock, ImageBlock, ResourceBlock
from web.harness.values.text import sayable

if TYPE_CHECKING:
    import mcp_types

SHOWN_CHARS = 100_000
"""Of one text of a resource that is read on the page."""

MAX_MEDIA_TYPE_CHARS = 100
MAX_SHOWN_URI_CHARS = 200


@dataclass(frozen=True, slots=True)
class Material:
    """Texts and pictures for the next message, and words about what could not be among them."""

    blocks: tuple[AttachedBlock, ...] = ()
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
    """The texts and pictures of a resource. Raises HarnessError where it has none."""
    import mcp_types as types

    found = _Found(source)
    for each in result.contents:
        if isinstance(each, types.TextResourceContents):
            found.text(each, name)
        else:
            found.data(each.blob, each.mime_type, name, str(each.uri))
    if not found.blocks:
        raise HarnessError(
            found.left_out[0] if found.left_out else "The resource is empty.",
            hint="Nothing was attached.",
            code="invalid_arguments",
        )
    return Material(tuple(found.blocks), tuple(found.left_out))


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
    text, found = "", _Found(source)
    for index, message in enumerate(result.messages):
        role = " of the assistant" if message.role == "assistant" else ""
        title = f"{name}, message {index + 1}{role}"
        match message.content:
            case types.TextContent(text=said) if index == last:
                text = sayable(said)
            case types.TextContent(text=said):
                found.blocks.append(ResourceBlock("", title, "text/plain", sayable(said), source))
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                found.text(resource, "")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                found.data(resource.blob, resource.mime_type, "", str(resource.uri))
            case types.ResourceLink() as link:
                uri = tidy(str(link.uri), MAX_URI_CHARS, one_line=True)
                found.left_out.append(f"A link to {uri}, which was not followed.")
            case types.ImageContent() | types.AudioContent() as media:
                found.data(media.data, media.mime_type, title)
    if not text.strip() and not found.blocks:
        raise HarnessError(
            found.left_out[0] if found.left_out else "The server sent an empty prompt.",
            hint="Nothing was put into your message.",
            code="invalid_arguments",
        )
    return Material(tuple(found.blocks), tuple(found.left_out), text)


def words_of(left_out: Sequence[str]) -> str:
    """One line about what was left out, '' for nothing."""
    if not left_out:
        return ""
    more = f" And {len(left_out) - 3} more." if len(left_out) > 3 else ""
    return f"Left out: {' '.join(left_out[:3])}{more}"


@dataclass(slots=True)
class _Found:
    """What can be attached of all that a server sent, and words about the rest."""

    source: str
    blocks: list[AttachedBlock] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def text(self, contents: mcp_types.TextResourceContents, name: str) -> None:
        text, uri, media_type = _said(contents)
        called = name or _end_of(uri) or uri
        self.blocks.append(ResourceBlock(uri, called, media_type, text, self.source))

    def data(self, encoded: str, claimed: str | None, name: str, uri: str = "") -> None:
        """A picture, whatever the server says that it is; nothing else that is no text."""
        uri = tidy(uri, MAX_URI_CHARS, one_line=True)
        place = f" ({uri[:MAX_SHOWN_URI_CHARS]})" if uri else ""
        picture = _picture(encoded, name or _end_of(uri) or uri)
        if picture is None:
            what = tidy(claimed, MAX_MEDIA_TYPE_CHARS, one_line=True) or "Data"
            self.left_out.append(f"{what}{place} is neither text nor a picture that models take.")
        elif is_too_large((picture.width, picture.height)):
            pixels = f"{picture.width:,} x {picture.height:,} pixels"
            self.left_out.append(f"A picture{place} of {pixels}, too many for a model.")
        else:
            self.blocks.append(picture)


def _picture(encoded: str, name: str) -> ImageBlock | None:
    try:
        data = binascii.a2b_base64(encoded)
    except ValueError:
        return None
    return image_block(data, name)


def _end_of(uri: str) -> str:
    return tidy(uri.rstrip("/").rpartition("/")[2], MAX_TITLE_CHARS, one_line=True)


def _said(contents: mcp_types.TextResourceContents) -> tuple[str, str, str]:
    """Text, address and media type, fit to be shown and sent."""
    return (
        sayable(contents.text),
        tidy(str(contents.uri), MAX_URI_CHARS, one_line=True),
        tidy(contents.mime_type, MAX_MEDIA_TYPE_CHARS, one_line=True),
    )
