"""Pictures among a chat's files, looked at by a model."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.harness.agent.agents import agent_for, all_events, of_type
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, Step, calls, says
from web.harness.agent.run import WITHOUT_PICTURES
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.files import file_tools
from web.harness.tools.outputs import MAX_PICTURE_BYTES
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext, ToolOutput
from web.harness.values.errors import PicturesRefused, ToolError
from web.harness.values.events import Note
from web.harness.values.messages import ImageBlock, TextBlock, ToolResultBlock
from web.harness.values.pictures import has_pictures

pytestmark = pytest.mark.anyio

JPEG = b"\xff\xd8\xff\xc0\0\x11\x08\0\x20\0\x30" + bytes(10) + b"\xff\xda\0\x02\xff\xd9"
GIF = b"GIF89a" + struct.pack("<HH", 48, 32) + bytes(3) + b";"
WEBP = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x2f\0\0\x1f\0\0" + bytes(20)


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    return ToolRegistry(file_tools(ChatFiles(tmp_path)))


async def read(registry: ToolRegistry, path: str) -> ToolOutput:
    return await registry.run("read_file", {"path": path}, ToolContext("c1"), 10)


@pytest.mark.parametrize(
    ("data", "kind"),
    [(png(48, 32), "PNG"), (JPEG, "JPEG"), (GIF, "GIF"), (WEBP, "WEBP")],
)
async def test_a_picture_is_seen_whatever_its_name_says(
    registry: ToolRegistry, tmp_path: Path, data: bytes, kind: str
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.txt").write_bytes(data)
    output = await read(registry, "notes/plan.txt")
    words, block = output.content
    assert isinstance(words, TextBlock)
    assert isinstance(block, ImageBlock)
    assert words.text == f"[picture plan.txt, {kind}, {len(data)} bytes, 48 x 32 pixels]"
    assert (block.data, block.width, block.height) == (data, 48, 32)
    assert not output.is_error


async def test_a_text_that_begins_like_a_picture_is_read_as_text(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    (tmp_path / "gif.txt").write_text("GIF89a is how a GIF begins.")
    output = await read(registry, "gif.txt")
    assert output.content == (TextBlock("GIF89a is how a GIF begins."),)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png(48, 32, MAX_PICTURE_BYTES + 1), "at most 4.0 MB can be looked at"),
        (png(10_000, 10_000), "10,000 x 10,000 pixels; one of at most 50,000,000"),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "is broken"),
        (png(48, 32)[:60], "but it is cut off, its end is missing"),
        (b"%PDF-1.7\n\0\xff", "for sure (11 bytes, application/pdf)"),
    ],
)
async def test_what_no_model_is_sent_is_an_error_in_words(
    registry: ToolRegistry, tmp_path: Path, data: bytes, words: str
) -> None:
    (tmp_path / "a.png").write_bytes(data)
    output = await read(registry, "a.png")
    assert output.is_error
    assert words in output.text
    assert len(output.content) == 1


async def test_a_picture_of_the_largest_size_comes_whole(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(png(48, 32, MAX_PICTURE_BYTES))
    assert isinstance((await read(registry, "a.png")).content[1], ImageBlock)


async def test_a_model_that_takes_no_pictures_reads_that_there_is_one(
    registry: ToolRegistry, tmp_path: Path
) -> None:
    (tmp_path / "plan.png").write_bytes(png(48, 32))
    refuses: list[Step] = [PicturesRefused("No pictures, please.")]
    asks = calls(("read_file", {"path": "plan.png"}))
    agent = agent_for(asks, refuses, says("I cannot see it."), tools=registry)
    events = await all_events(agent)
    assert of_type(events, Note) == [Note(WITHOUT_PICTURES, "No pictures, please.")]
    provider = agent._providers.get(agent.config.model)
    assert isinstance(provider, ScriptedProvider)
    first, again = (request.messages[-1] for request in provider.requests[1:])
    assert has_pictures(first)
    (result,) = again.content
    assert isinstance(result, ToolResultBlock)
    assert result.text.startswith("[picture plan.png, PNG")
    assert not has_pictures(again)


@pytest.mark.parametrize(("codec", "called"), [("utf-16", "UTF-16"), ("cp1252", "Windows-1252")])
async def test_a_text_in_another_encoding_is_read_and_not_edited(
    registry: ToolRegistry, tmp_path: Path, codec: str, called: str
) -> None:
    (tmp_path / "a.png").write_bytes("Größe\nMüller\nende".encode(codec))
    assert (await read(registry, "a.png")).text == f"[Read as {called}.]\nGröße\nMüller\nende"
    arguments = {"path": "a.png", "start_line": 2, "lines": 1}
    some = await registry.run("read_file", arguments, ToolContext("c2"), 10)
    assert some.text.startswith(f"[Read as {called}.]\nMüller\n\n[Lines 2 to 2 of 3 lines.")
    found = await registry.run("search_files", {"text": "ende"}, ToolContext("c3"), 10)
    assert found.text == "a.png:3: ende"
    change = {"path": "a.png", "old": "Größe", "new": "Höhe"}
    tool = registry.get("edit_file")
    assert tool is not None
    assert tool.preview is not None
    with pytest.raises(ToolError, match="can be written anew, in UTF-8, with write_file"):
        await tool.preview(change, ToolContext("c3"))
