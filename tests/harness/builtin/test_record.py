"""The readable record of a chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.pictures import picture
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.record import EVENTS, TRANSCRIPT, transcript, write_record
from web.harness.values.errors import NotFound
from web.harness.values.events import Event, ResultPart, RunResult, TextDelta, ToolResult
from web.harness.values.messages import (
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

pytestmark = pytest.mark.anyio

CHAT = (
    Message("1", "user", (ResourceBlock("file:a", "a", "text/plain", "attached"), TextBlock("Hi"))),
    Message(
        "2",
        "assistant",
        (
            ThinkingBlock("one\ntwo", "seal"),
            TextBlock("**Hello**"),
            ToolUseBlock("c1", "calculate", {"expression": "6*7"}),
            ToolUseBlock("c2", "calculate", malformed="{broken"),
        ),
    ),
    Message(
        "3",
        "tool",
        (
            ToolResultBlock("c1", (TextBlock("42"),)),
            ToolResultBlock("c2", (TextBlock("````\nnot the end\n## Person"),), is_error=True),
        ),
    ),
)


def test_a_transcript_reads_as_the_chat_went() -> None:
    text = "".join(transcript("My\nchat", CHAT))
    assert text == (
        "# My chat\n"
        "\n## Person\n"
        "\nAttached:\n\n```text\na file:a\n```\n\n```text\nattached\n```\n"
        "\nHi\n"
        "\n## Assistant\n"
        "\n> Thinking:\n>\n> one\n> two\n"
        "\n**Hello**\n"
        '\nCalls `calculate` (c1):\n\n```json\n{\n  "expression": "6*7"\n}\n```\n'
        "\nCalls `calculate` (c2):\n\n```json\n{broken\n```\n"
        "\n## Results\n"
        "\nResult of c1:\n\n```text\n42\n```\n"
        "\nError of c2:\n\n`````text\n````\nnot the end\n## Person\n`````\n"
    )


def test_a_picture_is_named_with_its_hash_and_not_written() -> None:
    plan = picture("plan.png")
    result = ToolResultBlock("c1", (TextBlock("Done."), plan))
    messages = (Message("1", "user", (plan,)), Message("2", "tool", (result,)))
    text = "".join(transcript("Chat", messages))
    words = (
        f"```text\n[picture plan.png, PNG, 49 bytes, 640 x 480 pixels] sha256 {plan.sha256}\n```"
    )
    assert text.count(words) == 2
    assert f"Result of c1:\n\n```text\nDone.\n```\n\n{words}" in text


async def test_a_record_is_written_read_and_replaced(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path / "chat")
    events = [
        Event(1, 0.0, TextDelta("Hello\n\ud800", "2")),
        Event(2, 1.5, ToolResult("c1", "t", "42", parts=(ResultPart("text", "x"),))),
        Event(3, 2.0, RunResult("completed", "Hello")),
    ]
    with pytest.raises(NotFound):
        await files.open_record(EVENTS).__aenter__()
    await write_record(files, "Old", CHAT[:1], [("r1", events[:1])])
    await write_record(files, "New", CHAT, [("r1", events), ("r2", events[:1])])
    folder = tmp_path / "chat" / ".harness" / "record"
    assert sorted(path.name for path in folder.iterdir()) == [EVENTS, TRANSCRIPT]
    async with files.open_record(TRANSCRIPT) as opened:
        assert (await opened.read(0, opened.size)).decode() == "".join(transcript("New", CHAT))
    async with files.open_record(EVENTS) as opened:
        lines = [json.loads(line) for line in (await opened.read(0, opened.size)).splitlines()]
    assert [(line["run"], line["number"], line["type"]) for line in lines] == [
        ("r1", 1, "text_delta"),
        ("r1", 2, "tool_result"),
        ("r1", 3, "run_result"),
        ("r2", 1, "text_delta"),
    ]
    assert lines[1]["at"] == "1970-01-01T00:00:01.500000+00:00"
    assert lines[1]["data"]["parts"][0]["text"] == "x"
    # It is no file of the chat's own.
    assert await files.list() == ()
    assert (await files.survey()).left_out == 0


async def test_a_record_that_cannot_be_made_leaves_the_one_before(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path / "chat")
    await write_record(files, "Good", CHAT, [])

    def breaks() -> list[tuple[str, list[Event]]]:
        raise ValueError("no events")

    with pytest.raises(ValueError, match="no events"):
        await write_record(files, "Bad", CHAT, (each for _ in "x" for each in breaks()))
    async with files.open_record(TRANSCRIPT) as opened:
        assert await opened.read(0, 7) == b"# Good\n"
    assert len(list((tmp_path / "chat" / ".harness" / "record").iterdir())) == 2
