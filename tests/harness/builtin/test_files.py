"""The file tools as an agent uses them."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from web.harness.builtin import standard_tools
from web.harness.builtin.files import file_tools
from web.harness.builtin.rooted import FolderLimits
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext, ToolOutput
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext("call-1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chat"


@pytest.fixture
def registry(folder: Path) -> ToolRegistry:
    return ToolRegistry(file_tools(folder))


async def run(registry: ToolRegistry, name: str, **arguments: object) -> ToolOutput:
    return await registry.run(name, arguments, CONTEXT, 10)


async def preview(registry: ToolRegistry, **arguments: object) -> JsonObject:
    tool = registry.get("write_file")
    assert tool is not None
    assert tool.preview is not None
    shown = await tool.preview(registry.validate("write_file", arguments), CONTEXT)
    assert shown is not None
    return shown


def test_reading_runs_by_itself_and_writing_asks(registry: ToolRegistry) -> None:
    found = {tool.name: (tool.permission, tool.replay) for tool in registry}
    assert found == {
        "read_file": (PermissionLevel.ALLOW, "safe"),
        "write_file": (PermissionLevel.ASK, "idempotent"),
        "list_files": (PermissionLevel.ALLOW, "safe"),
    }


def test_the_standard_tools_fit_together(folder: Path) -> None:

    names = [
        spec.name
        for spec in ToolRegistry(standard_tools(folder, lambda: datetime.now(UTC))).specs()
    ]
    assert names == ["calculate", "current_time", "wait", "read_file", "write_file", "list_files"]
    assert not folder.exists()


async def test_what_is_written_is_listed_and_read(registry: ToolRegistry, folder: Path) -> None:
    assert (await run(registry, "list_files")).text == "There are no files yet."
    written = await run(registry, "write_file", path="./notes/ü.txt", content="one\r\ntwö")
    assert written.text == "Wrote notes/ü.txt (9 bytes, new file)."
    assert (folder / "notes" / "ü.txt").read_bytes() == "one\r\ntwö".encode()
    assert (await run(registry, "read_file", path="notes/ü.txt")).text == "one\r\ntwö"
    again = await run(registry, "write_file", path="notes/ü.txt", content="")
    assert again.text == "Wrote notes/ü.txt (0 bytes, replaced)."
    assert (await run(registry, "list_files")).text == "notes/ü.txt (0 bytes)"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", bytes(range(256))])
async def test_what_is_no_text_is_not_read(
    registry: ToolRegistry, folder: Path, content: bytes
) -> None:
    folder.mkdir()
    (folder / "f").write_bytes(content)
    output = await run(registry, "read_file", path="f")
    assert output.is_error
    assert "not text in UTF-8" in output.text


async def test_a_missing_file_is_an_error_in_words(registry: ToolRegistry) -> None:
    output = await run(registry, "read_file", path="none.txt")
    assert (output.text, output.is_error) == ('There is no file "none.txt".', True)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a\\b", "", "C:x", "a\0"])
async def test_a_path_that_leads_out_is_refused_before_anyone_is_asked(
    registry: ToolRegistry, folder: Path, path: str
) -> None:
    with pytest.raises(ToolError, match="is refused"):
        registry.validate("write_file", {"path": path, "content": "x"})
    for name, arguments in (("read_file", {}), ("write_file", {"content": "x"})):
        output = await run(registry, name, path=path, **arguments)
        assert output.is_error
        assert "is refused" in output.text
    assert not folder.exists()


async def test_too_much_content_is_refused_before_anyone_is_asked(folder: Path) -> None:
    registry = ToolRegistry(file_tools(folder, FolderLimits(max_file_bytes=10)))
    with pytest.raises(ToolError, match="12 bytes; the limit is 10"):
        registry.validate("write_file", {"path": "f", "content": "ü" * 6})


async def test_links_in_the_folder_are_not_followed(
    registry: ToolRegistry, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    os.link(secret, folder / "hard")
    for name in ("link", "hard"):
        assert (await run(registry, "read_file", path=name)).is_error
        assert (await run(registry, "write_file", path=name, content="x")).is_error
        shown = await preview(registry, path=name, content="x")
        assert shown["kind"] == "text"
        assert "This will fail" in shown["text"]
        assert 'secret"' not in shown["text"]
    assert secret.read_text() == "secret"
    assert (
        "Left out, since they cannot be read here: 2." in (await run(registry, "list_files")).text
    )


async def test_the_preview_is_what_the_write_then_does(
    registry: ToolRegistry, folder: Path
) -> None:
    first, second = "a\nb\nc\n", "a\nB\nc\nd\n"
    shown = await preview(registry, path="f.txt", content=first)
    assert shown["note"] == "New file"
    assert not folder.exists()
    await run(registry, "write_file", path="f.txt", content=first)
    assert [line for _, line in shown["lines"]] == (folder / "f.txt").read_text().splitlines()

    shown = await preview(registry, path="./f.txt", content=second)
    assert shown["path"] == "f.txt"
    assert shown["note"] == "The file exists. 2 lines change."
    before = (folder / "f.txt").read_text().splitlines()
    assert [line for kind, line in shown["lines"] if kind != "add"] == before
    await run(registry, "write_file", path="f.txt", content=second)
    after = (folder / "f.txt").read_text().splitlines()
    assert [line for kind, line in shown["lines"] if kind != "cut"] == after

    shown = await preview(registry, path="f.txt", content=second)
    assert (shown["note"], shown["lines"]) == ("No change", [])


async def test_the_preview_of_a_file_that_is_no_text_says_so(
    registry: ToolRegistry, folder: Path
) -> None:
    folder.mkdir()
    (folder / "f").write_bytes(b"\xff")
    shown = await preview(registry, path="f", content="x\n")
    assert shown["note"] == "The file exists and is not text. All of it is replaced."
    assert shown["lines"] == [["add", "x"]]


async def test_many_calls_at_once_leave_every_file_whole(
    registry: ToolRegistry, folder: Path
) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                run(registry, "write_file", path=f"d{n % 4}/f{n % 10}", content=str(n) * 1000)
            )
            for n in range(60)
        ]
    assert not any(task.result().is_error for task in tasks)
    for path in folder.rglob("f*"):
        text = path.read_text()
        assert text == text[: len(text) // 1000] * 1000


async def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    registry = ToolRegistry(file_tools(tmp_path / "file" / "chat"))
    output = await run(registry, "write_file", path="f", content="x")
    assert output.is_error
    assert str(tmp_path) not in output.text
    assert "is a link or a file" in output.text
