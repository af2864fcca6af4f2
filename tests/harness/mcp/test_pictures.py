"""Pictures of a result: the model is sent the first, those that are too large are only named."""

from __future__ import annotations

import base64

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from tests.support.pictures import png
from web.harness.mcp.results import tool_output
from web.harness.tools.outputs import MAX_PICTURE_BYTES, MAX_PICTURES, bounded
from web.harness.tools.tool import Blob, ToolOutput
from web.harness.values.messages import ImageBlock

pytestmark = pytest.mark.anyio


def picture(data: bytes, mime_type: str = "image/png") -> ImageContent:
    return ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)


async def read(*content: ImageContent | TextContent) -> ToolOutput:
    return bounded(await tool_output(CallToolResult(content=list(content))), 60_000)


def seen(output: ToolOutput) -> list[bytes]:
    """The data of the pictures that a model is sent."""
    return [block.data for block in output.content if isinstance(block, ImageBlock)]


async def test_a_picture_reaches_the_model_after_the_line_that_names_it() -> None:
    before, after = TextContent(text="Before:"), TextContent(text="After.")
    data = png(64, 48)
    output = await read(before, picture(data, "text/plain"), after)
    assert [getattr(block, "text", block.type) for block in output.content] == [
        "Before:",
        f"[image image/png, {len(data)} bytes]",
        "image",
        "After.",
    ]
    (block,) = (block for block in output.content if isinstance(block, ImageBlock))
    assert (block.media_type, block.width, block.height) == ("image/png", 64, 48)
    assert block.data == data


async def test_a_result_brings_so_many_pictures_and_names_the_rest() -> None:
    pictures = [png(9, 1 + number) for number in range(MAX_PICTURES + 2)]
    output = await read(*map(picture, pictures))
    assert seen(output) == pictures[:MAX_PICTURES]
    assert output.text.count("left out, a result brings at most 4 pictures of 4.0 MB") == 2
    assert len([part for part in output.parts if part.kind == "image"]) == len(pictures)


async def test_a_result_brings_so_many_bytes_of_pictures() -> None:
    small, large = png(9, 9), png(9, 8, MAX_PICTURE_BYTES)
    output = await read(picture(small), picture(large), picture(small))
    assert seen(output) == [small, small]
    assert "PNG, 4.0 MB, 9 x 8 pixels: left out" in output.text


async def test_pictures_stay_where_the_text_around_them_is_cut() -> None:
    long = TextContent(text="x" * 500)
    output = bounded(
        await tool_output(CallToolResult(content=[long, picture(png(9, 9)), long])), 200
    )
    assert seen(output) == [png(9, 9)]
    assert len(output.text) == 200
    assert "[Cut here: the result has " in output.text


async def test_a_picture_with_too_many_pixels_is_named_and_not_kept() -> None:
    kept: list[Blob] = []

    def keep(blob: Blob) -> bool:
        kept.append(blob)
        return True

    bomb, fine = png(60_000, 60_000), png(7_000, 7_000)
    output = await tool_output(
        CallToolResult(content=[picture(each) for each in (bomb, fine)]), keep=keep
    )
    assert [part.kind for part in output.parts] == ["note", "image"]
    assert "60,000 x 60,000 pixels" in output.parts[0].text
    assert "60,000 x 60,000 pixels" in output.text
    assert [blob.data for blob in kept] == [fine]
    assert seen(output) == [fine]
