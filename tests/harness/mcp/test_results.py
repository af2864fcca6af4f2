"""Results of a server: the model reads text, a person is shown parts, data is put aside."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from typing import Any

import pytest
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

from web.harness.mcp.checking import SchemaCheck
from web.harness.mcp.results import MAX_SHOWN, MAX_TEXT_CHARS, json_text, tool_output
from web.harness.tools.outputs import bounded
from web.harness.tools.tool import Blob, ToolOutput
from web.harness.values.events import ResultPart
from web.harness.values.messages import TextBlock

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(34_000)
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "


class Kept:
    """Keeps every blob up to a size."""

    def __init__(self, most: int = 100_000_000) -> None:
        self.blobs: dict[str, Blob] = {}
        self.most = most

    def __call__(self, blob: Blob) -> bool:
        if len(blob.data) > self.most:
            return False
        self.blobs[blob.sha256] = blob
        return True


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def read(
    *content: ContentBlock, keep: Kept | None = None, schema: Any = None, **more: Any
) -> ToolOutput:
    check = SchemaCheck(schema) if schema is not None else None
    result = CallToolResult(content=list(content), **more)
    return await tool_output(result, check, keep or Kept())


async def test_text_is_text_and_needs_no_parts() -> None:
    output = await read(TextContent(text="one"), TextContent(text="two"))
    assert output.content == (TextBlock("one"), TextBlock("two"))
    assert output.parts == ()
    assert not output.is_error


async def test_a_failure_is_marked_and_keeps_its_text() -> None:
    output = await read(TextContent(text="no such city"), is_error=True)
    assert (output.text, output.is_error) == ("no such city", True)


async def test_pictures_and_sound_are_lines_for_the_model_and_data_for_the_page() -> None:
    keep = Kept()
    output = await read(
        TextContent(text="Look:"),
        ImageContent(data=encoded(PNG), mime_type="image/png"),
        AudioContent(data=encoded(WAV), mime_type="audio/x-anything"),
        keep=keep,
    )
    assert output.text == "Look:\n[image image/png, 34 KB]\n[audio audio/wav, 16 bytes]"
    assert [part.kind for part in output.parts] == ["text", "image", "audio"]
    image = output.parts[1]
    assert (image.media_type, image.size) == ("image/png", len(PNG))
    assert keep.blobs[image.sha256].data == PNG
    assert keep.blobs[output.parts[2].sha256].media_type == "audio/wav"


async def test_data_is_what_its_bytes_are_and_not_what_a_server_says() -> None:
    keep = Kept()
    svg = b"<svg onload='alert(1)'/>"
    output = await read(ImageContent(data=encoded(svg), mime_type="image/png"), keep=keep)
    assert output.parts[0].kind == "file"
    assert keep.blobs[output.parts[0].sha256].media_type == "application/octet-stream"


@pytest.mark.parametrize(
    "data",
    [
        base64.encodebytes(PNG).decode(),
        encoded(PNG).rstrip("="),
        base64.urlsafe_b64encode(PNG).decode(),
        f"data:image/png;base64,{encoded(PNG)}",
    ],
    ids=["with_line_ends", "without_padding", "of_addresses", "as_an_address"],
)
async def test_base64_is_read_however_it_is_written(data: str) -> None:
    keep = Kept()
    output = await read(ImageContent(data=data, mime_type="image/png"), keep=keep)
    assert keep.blobs[output.parts[0].sha256].data == PNG


@pytest.mark.parametrize("data", ["not base64!", "AAAAA", "é" * 8, "A=A="])
async def test_data_that_cannot_be_read_is_said_to_be_so(data: str) -> None:
    output = await read(ImageContent(data=data, mime_type="image/png"))
    assert output.text == "[image/png that cannot be read: it is not base64]"
    assert output.parts == (ResultPart("note", output.text[1:-1]),)


async def test_data_that_is_not_kept_has_no_name() -> None:
    image = ImageContent(data=encoded(PNG), mime_type="image/png")
    output = await read(image, keep=Kept(most=10))
    assert (output.parts[0].kind, output.parts[0].sha256) == ("image", "")
    assert output.text == "[image image/png, 34 KB]"


async def test_links_and_resources_are_named() -> None:
    keep = Kept()
    output = await read(
        ResourceLink(uri="https://a.example/x", name="x", title="The\u200b X", description="About"),
        EmbeddedResource(resource=TextResourceContents(uri="file:///n.md", text="# N")),
        EmbeddedResource(
            resource=BlobResourceContents(
                uri="file:///d/a.zip", blob=encoded(b"PK"), mime_type="application/zip"
            )
        ),
        keep=keep,
    )
    assert output.text == (
        "[resource link The X: https://a.example/x]\nAbout\n"
        "[resource file:///n.md]\n# N\n"
        "[file application/zip, 2 bytes file:///d/a.zip]"
    )
    link, resource, file = output.parts
    assert (link.kind, link.title, link.uri, link.text) == (
        "link",
        "The X",
        "https://a.example/x",
        "About",
    )
    assert (resource.kind, resource.uri, resource.text) == ("resource", "file:///n.md", "# N")
    assert (file.kind, file.title, file.media_type) == ("file", "a.zip", "application/zip")
    assert keep.blobs[file.sha256].data == b"PK"


async def test_structured_output_is_for_the_model_where_no_text_says_it() -> None:
    value = {"city": "Zürich", "days": [1, 2]}
    output = await read(structured_content=value)
    assert output.text == '{"city": "Zürich", "days": [1, 2]}'
    assert output.parts == (
        ResultPart("structured", json.dumps(value, indent=2, ensure_ascii=False)),
    )
    with_text = await read(TextContent(text="It is warm."), structured_content=value)
    assert with_text.text == "It is warm."
    assert [part.kind for part in with_text.parts] == ["text", "structured"]
    image = ImageContent(data=encoded(PNG), mime_type="image/png")
    with_image = await read(image, structured_content={"n": 1})
    assert with_image.text == '[image image/png, 34 KB]\n{"n": 1}'


async def test_structured_output_that_is_sent_as_text_too_is_shown_once() -> None:
    small, large = {"a": [1]}, {"a": [{"n": number} for number in range(50_000)]}
    for value in (small, large):
        output = await read(
            TextContent(text=json.dumps(value, separators=(",", ":"))), structured_content=value
        )
        assert [part.kind for part in output.parts] == ["structured"]
        assert output.text.startswith('{"a":[')


async def test_structured_output_that_does_not_fit_is_kept_with_a_warning() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    output = await read(structured_content={"n": "x"}, schema=schema)
    warning = "The structured result does not fit the tool's own schema: [n] 'x' is not of type"
    assert output.text.startswith('{"n": "x"}\n[' + warning)
    assert [part.kind for part in output.parts] == ["structured", "note"]
    assert not output.is_error
    fitting = await read(structured_content={"n": 1}, schema=schema)
    assert fitting.text == '{"n": 1}'
    none = await read(TextContent(text="x"), schema=schema)
    assert none.text == "x\n[The tool promises a structured result, but sent none.]"
    failed = await read(TextContent(text="x"), schema=schema, is_error=True)
    assert failed.text == "x"


async def test_no_content_is_an_empty_text() -> None:
    assert (await read()).text == ""


async def test_more_than_a_person_or_a_model_can_read_is_left_out() -> None:
    output = await read(*(TextContent(text=f"t{number}") for number in range(5_000)))
    assert output.text.endswith("\nt999\n[4,000 more parts of the result were left out.]")
    assert len(output.parts) == MAX_SHOWN + 1
    long = await read(TextContent(text="x" * 10_000_000), TextContent(text="y"))
    assert len(long.text) < MAX_TEXT_CHARS + 200
    assert "[Cut here: " in long.text
    assert "1 more parts" in long.text
    shown = bounded(await read(structured_content={"a": "x" * 10_000_000}), 1_000)
    assert len(shown.text) == 1_000
    assert len(shown.parts[0].text) <= 8_000


async def longest_wait(result: CallToolResult) -> float:
    """The longest time in seconds that a turn of the event loop took meanwhile."""
    longest, done = 0.0, asyncio.Event()

    async def beat() -> None:
        nonlocal longest
        before = time.perf_counter()
        while not done.is_set():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, before = max(longest, now - before), now

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(beat())
        await asyncio.sleep(0)
        bounded(await tool_output(result, None, Kept()), 60_000)
        done.set()
    return longest


ROWS = {"rows": [{"id": number, "name": "x" * 50} for number in range(120_000)]}


@pytest.mark.parametrize(
    "result",
    [
        CallToolResult(
            content=[ImageContent(data=encoded(PNG + os.urandom(7_000_000)), mime_type="image/png")]
        ),
        CallToolResult(content=[TextContent(text="ü€ \ud83d" * 2_500_000)]),
        CallToolResult(content=[], structured_content=ROWS),
        CallToolResult(content=[TextContent(text=json.dumps(ROWS))], structured_content=ROWS),
        CallToolResult(content=[], structured_content={"text": "ü\n" * 5_000_000}),
        CallToolResult(content=[TextContent(text="x")] * 500_000),
    ],
    ids=str.split("image text structured twice long_string many"),
)
async def test_ten_megabytes_hold_nobody_up(result: CallToolResult) -> None:
    # A few milliseconds; the best of some tries, because the machine has other things to do.
    assert min([await longest_wait(result) for _ in range(4)]) < 0.05


def test_json_is_written_up_to_a_limit() -> None:
    value = {"a": [1, None, True, "é\n"], "b": {"c": 1.5}}
    assert json_text(value, 1_000) == (json.dumps(value, ensure_ascii=False), True)
    whole = json.dumps(value, indent=2, ensure_ascii=False)
    for limit in range(len(whole) + 3):
        assert json_text(value, limit, indent=2) == (whole[:limit], limit >= len(whole))
