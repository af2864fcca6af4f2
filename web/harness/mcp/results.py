"""Results of a server: text and pictures for the model, parts for a person, data put aside.

A result may have tens of megabytes. Anything but a small one is worked on in a thread, in steps
that let the event loop in between.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from web.harness.mcp.checking import SchemaCheck, weight
from web.harness.mcp.media import UNKNOWN, kind_of, media_type_of
from web.harness.mcp.wording import tidy
from web.harness.tools.outputs import MAX_PART_CHARS, MAX_PARTS, MAX_TITLE_CHARS, MAX_URI_CHARS
from web.harness.tools.pictures import image_block, is_too_large, pixel_size
from web.harness.tools.tool import Blob, KeepBlob, ToolOutput
from web.harness.tools.words import shorten
from web.harness.values.events import ResultPart
from web.harness.values.messages import ResultContent, TextBlock
from web.harness.values.text import amount

MAX_TEXT_CHARS = 400_000
"""Of a result; the configuration of an agent limits what a model is sent of it further."""

MAX_CONTENTS = 1_000
MAX_SHOWN = MAX_PARTS - 5
"""Of those, for a person; a structured result and remarks may come after them."""

SMALL = 2_000
"""As `weight` counts; a larger result is worked on in a thread."""

_COMPARED_CHARS = 20_000

_DECODED_AT_A_TIME = 256 * 1024
"""Characters of base64."""


async def tool_output(
    result: CallToolResult, check: SchemaCheck | None = None, keep: KeepBlob | None = None
) -> ToolOutput:
    """`result` as a tool's output. Never fails: what cannot be read is said to be so.

    `check` is that of the tool's output schema. Binary data is handed to `keep` in the event
    loop, a piece at a time.
    """
    reading = _Reading(check)
    if _is_small(result):
        reading.read(result)
    else:
        await asyncio.to_thread(reading.read, result)
    kept = {blob.sha256 for blob in reading.blobs if keep is not None and keep(blob)}
    parts = tuple(_with_fate(part, kept) for part in reading.parts)
    if all(part.kind == "text" for part in parts):
        parts = ()
    return ToolOutput(tuple(reading.said), result.is_error, parts)


def _is_small(result: CallToolResult) -> bool:
    if len(result.content) > SMALL or weight(result.structured_content, SMALL) >= SMALL:
        return False
    return sum(map(_characters, result.content)) < 100 * SMALL


def _characters(content: ContentBlock) -> int:
    match content:
        case TextContent():
            return len(content.text)
        case ImageContent() | AudioContent():
            return len(content.data)
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return len(resource.text)
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return len(resource.blob)
        case _:
            return 100


def _with_fate(part: ResultPart, kept: set[str]) -> ResultPart:
    return part if part.sha256 in kept else replace(part, sha256="")


@dataclass(slots=True)
class _Reading:
    """What is read of one result: `said` for the model, `parts` and `blobs` for a person.

    Each picture stands after the line that names it.
    """

    check: SchemaCheck | None
    said: list[ResultContent] = field(default_factory=list)
    parts: list[ResultPart] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    left: int = MAX_TEXT_CHARS
    shown: int = 0

    def read(self, result: CallToolResult) -> None:
        read = 0
        while read < min(len(result.content), MAX_CONTENTS) and self.left > 0:
            self._content(result.content[read])
            read += 1
        if read < len(result.content):
            self._note(f"{len(result.content) - read:,} more parts of the result were left out.")
        elif self.shown > MAX_SHOWN:
            words = f"The first {MAX_SHOWN} of {self.shown:,} parts are shown."
            self.parts.append(ResultPart("note", words))
        if result.structured_content is not None:
            self._structured(result.structured_content)
        elif self.check is not None and not result.is_error and self.check.faults(None):
            self._note("The tool promises a structured result, but sent none.")
        if not self.said:
            self.said.append(TextBlock(""))

    def _content(self, content: ContentBlock) -> None:
        match content:
            case TextContent():
                self._say(content.text)
                self._show(ResultPart("text", content.text, size=len(content.text)))
            case ImageContent() | AudioContent():
                self._data(content.data, content.mime_type)
            case ResourceLink():
                self._link(content)
            case EmbeddedResource(resource=TextResourceContents() as resource):
                self._say(f"[resource {_uri(resource.uri)}]\n{resource.text}")
                self._show(
                    ResultPart(
                        "resource",
                        resource.text,
                        uri=_uri(resource.uri),
                        media_type=tidy(resource.mime_type, 100, one_line=True),
                        size=len(resource.text),
                    )
                )
            case EmbeddedResource(resource=BlobResourceContents() as resource):
                self._data(resource.blob, resource.mime_type or UNKNOWN, _uri(resource.uri))

    def _say(self, text: str) -> None:
        if len(text) > self.left:
            text = (
                f"{text[: max(0, self.left)]}\n"
                f"[Cut here: only {MAX_TEXT_CHARS:,} characters of the result were read.]"
            )
        self.left -= len(text)
        self.said.append(TextBlock(text))

    def _show(self, part: ResultPart) -> None:
        self.shown += 1
        if self.shown <= MAX_SHOWN:
            self.parts.append(replace(part, text=part.text[:MAX_PART_CHARS]))

    def _note(self, words: str) -> None:
        self.said.append(TextBlock(f"[{words}]"))
        self.parts.append(ResultPart("note", words))

    def _data(self, encoded: str, claimed: str, uri: str = "") -> None:
        claimed = tidy(claimed, 100, one_line=True) or UNKNOWN
        data = _decoded(encoded)
        if data is None:
            self._note(f"{claimed} that cannot be read: it is not base64")
            return
        media_type = media_type_of(data)
        kind = kind_of(media_type)
        # The model is told what the server says, unless the page knows better.
        shown = claimed if kind == "file" else media_type
        place = f" {uri}" if uri else ""
        size = pixel_size(data) if kind == "image" else None
        if size is not None and is_too_large(size):
            large = f"of {size[0]:,} x {size[1]:,} pixels: too many to be shown"
            self._note(f"{kind} {shown}, {amount(len(data))}{place}, {large}")
            return
        self._say(f"[{kind} {shown}, {amount(len(data))}{place}]")
        blob = Blob(hashlib.sha256(data).hexdigest(), media_type, data)
        if self.shown < MAX_SHOWN:
            self.blobs.append(blob)
        title = tidy(uri.rpartition("/")[2], MAX_TITLE_CHARS, one_line=True)
        picture = image_block(data, title, sha256=blob.sha256)
        if picture is not None:
            self.said.append(picture)
        self._show(ResultPart(kind, "", title, uri, shown, len(data), blob.sha256))

    def _link(self, link: ResourceLink) -> None:
        uri = _uri(link.uri)
        title = tidy(link.title or link.name, MAX_TITLE_CHARS, one_line=True) or uri
        description = tidy(link.description, MAX_PART_CHARS)
        words = f"[resource link {title}: {uri}]"
        self._say(f"{words}\n{description}" if description else words)
        media_type = tidy(link.mime_type, 100, one_line=True)
        self._show(ResultPart("link", description, title, uri, media_type, size=len(description)))

    def _structured(self, value: Any) -> None:
        """JSON for a person; for the model only where no text says the same."""
        if self._is_all_text_of(value):
            self.parts.clear()
        elif not any(part.kind in ("text", "resource") for part in self.parts):
            text, whole = json_text(value, max(0, self.left))
            self._say(text if whole else f"{text}\n[Cut here: the rest was not read.]")
        pretty, whole = json_text(value, MAX_PART_CHARS - 2, indent=2)
        self.parts.append(ResultPart("structured", pretty if whole else f"{pretty}\n…"))
        faults = self.check.faults(value) if self.check is not None else []
        if faults:
            place = "".join(f"[{step}]" for step in faults[0].path)
            words = shorten(f"{place} {faults[0].message}".strip(), 300)
            self._note(f"The structured result does not fit the tool's own schema: {words}")

    def _is_all_text_of(self, value: Any) -> bool:
        """Whether the only text is the structured result once more, as servers like to send."""
        texts = [block.text for block in self.said if isinstance(block, TextBlock)]
        if [part.kind for part in self.parts] != ["text"] or len(texts) != 1:
            return False
        text = texts[0]
        if len(text) > _COMPARED_CHARS:
            # By their beginnings: to read megabytes of JSON in one go would hold up everybody.
            start, _ = json_text(value, _COMPARED_CHARS)
            length = len("".join(start.split()))
            return "".join(text[: 4 * _COMPARED_CHARS].split())[:length] == "".join(start.split())
        try:
            return bool(json.loads(text) == value)
        except (ValueError, RecursionError):
            return False


def json_text(value: Any, max_chars: int, *, indent: int | None = None) -> tuple[str, bool]:
    """JSON of at most `max_chars` characters, and whether that is all of it.

    Costs no more than what is given back.
    """
    pieces: list[str] = []
    left = max_chars
    encoder = json.JSONEncoder(ensure_ascii=False, indent=indent)
    try:
        for piece in encoder.iterencode(_trimmed(value, [max_chars])):
            pieces.append(piece[:left])
            left -= len(piece)
            if left < 0:
                return "".join(pieces), False
    except (ValueError, RecursionError):
        return "".join([*pieces, "…"]), False
    return "".join(pieces), True


def _trimmed(value: Any, left: list[int]) -> Any:
    """As much of the value as is written with `left[0]` characters, and a little more.

    The encoder takes a text, and every value, in one go; most of them may not be wanted.
    """
    left[0] -= 1
    if isinstance(value, str):
        value = value[: max(0, left[0]) + 1]
        left[0] -= len(value)
        return value
    if isinstance(value, dict):
        some: dict[str, Any] = {}
        for name, each in value.items():
            if left[0] < 0:
                break
            some[_trimmed(name, left)] = _trimmed(each, left)
        return some
    if isinstance(value, list):
        items: list[Any] = []
        for each in value:
            if left[0] < 0:
                break
            items.append(_trimmed(each, left))
        return items
    return value


def _decoded(encoded: str) -> bytes | None:
    """The bytes of base64 text, None where it is none. A `data:` address is taken too."""
    if encoded.startswith("data:"):
        encoded = encoded[encoded.find(",", 0, 300) + 1 :]
    pieces: list[bytes] = []
    rest = ""
    try:
        for start in range(0, len(encoded), _DECODED_AT_A_TIME):
            text = rest + "".join(encoded[start : start + _DECODED_AT_A_TIME].split())
            whole = len(text) - len(text) % 4
            rest = text[whole:]
            pieces.append(_decoded_piece(text[:whole]))
        pieces.append(_decoded_piece(rest + "=" * (-len(rest) % 4)))
    except (binascii.Error, ValueError):
        return None
    return b"".join(pieces)


def _decoded_piece(text: str) -> bytes:
    # The letters of addresses and files are taken for those of mail.
    return binascii.a2b_base64(text.replace("-", "+").replace("_", "/"), strict_mode=True)


def _uri(uri: object) -> str:
    return tidy(str(uri), MAX_URI_CHARS, one_line=True)
