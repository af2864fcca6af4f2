"""The file tools as an agent uses them."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from web.harness.builtin import standard_tools
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.files import MAX_CONTENT_BYTES, file_tools
from web.harness.builtin.versions import Origin
from web.harness.tools.previews import in_short
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext, ToolOutput
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

NUMBERS = itertools.count(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chat"


@pytest.fixture
def files(folder: Path) -> ChatFiles:
    return ChatFiles(folder)


@pytest.fixture
def registry(files: ChatFiles) -> ToolRegistry:
    return ToolRegistry(file_tools(files))


def context() -> ToolContext:
    """That of a call of its own."""
    return ToolContext(f"call-{next(NUMBERS)}", "run-1", approval="key-1", decision="allow")


async def run(
    registry: ToolRegistry, name: str, call: ToolContext | None = None, **arguments: object
) -> ToolOutput:
    return await registry.run(name, arguments, call or context(), 10)


async def preview(
    registry: ToolRegistry, name: str, call: ToolContext | None = None, **arguments: object
) -> JsonObject:
    tool = registry.get(name)
    assert tool is not None
    assert tool.preview is not None
    shown = await tool.preview(registry.validate(name, arguments), call or context())
    assert shown is not None
    return in_short(shown)


def test_looking_runs_by_itself_and_changing_asks(registry: ToolRegistry) -> None:
    found = {tool.name: (tool.permission, tool.replay) for tool in registry}
    looking = (PermissionLevel.ALLOW, "safe")
    changing = (PermissionLevel.ASK, "idempotent")
    assert found == {
        "read_file": looking,
        "write_file": changing,
        "list_files": looking,
        "edit_file": changing,
        "find_files": looking,
        "search_files": looking,
        "delete_file": changing,
    }
    assert all((tool.preview is not None) is (tool.replay != "safe") for tool in registry)


def test_the_standard_tools_fit_together(folder: Path) -> None:
    tools = ToolRegistry(standard_tools(folder, lambda: datetime.now(UTC)))
    assert [spec.name for spec in tools.specs()] == [
        *("calculate", "current_time", "wait", "read_file", "write_file", "list_files"),
        *("edit_file", "find_files", "search_files", "delete_file", "update_plan", "delegate"),
    ]
    assert not folder.exists()


async def test_what_is_written_is_listed_and_read(registry: ToolRegistry, folder: Path) -> None:
    assert (await run(registry, "list_files")).text == "There are no files yet."
    assert not folder.exists()
    written = await run(registry, "write_file", path="./notes/ü.txt", content="one\r\ntwö")
    assert written.text == "Wrote notes/ü.txt (9 bytes, new file)."
    assert (folder / "notes" / "ü.txt").read_bytes() == "one\r\ntwö".encode()
    assert (await run(registry, "read_file", path="notes/ü.txt")).text == "one\r\ntwö"
    again = await run(registry, "write_file", path="notes/ü.txt", content="", replace=True)
    assert again.text == "Wrote notes/ü.txt (0 bytes, now version 2)."
    await run(registry, "write_file", path="top.txt", content="x")
    listed = (await run(registry, "list_files")).text
    assert listed == "notes/ü.txt (0 bytes)\ntop.txt (1 byte)"
    for name in ("notes", "notes/", "./notes"):
        assert (await run(registry, "list_files", folder=name)).text == "notes/ü.txt (0 bytes)"
    assert (await run(registry, "list_files", folder="n")).text == 'There are no files in "n".'


async def test_a_file_that_exists_is_replaced_only_if_that_is_meant(
    registry: ToolRegistry, folder: Path
) -> None:
    await run(registry, "write_file", path="f.txt", content="mine")
    refused = await run(registry, "write_file", path="f.txt", content="other")
    assert refused.is_error
    assert "send replace=true" in refused.text
    with pytest.raises(ToolError, match="send replace=true"):
        await preview(registry, "write_file", path="f.txt", content="other")
    assert (folder / "f.txt").read_text() == "mine"
    same = await run(registry, "write_file", path="f.txt", content="mine")
    assert (same.text, same.is_error) == ("f.txt holds exactly this already (4 bytes).", False)


async def test_a_piece_of_text_is_replaced_where_it_stands(
    registry: ToolRegistry, folder: Path
) -> None:
    await run(registry, "write_file", path="f.txt", content="one\ntwo\none\n")
    shown = await preview(registry, "edit_file", path="f.txt", old="two", new="2")
    assert [line for line in shown["lines"] if line[0] != "same"] == [["cut", "two"], ["add", "2"]]
    done = await run(registry, "edit_file", path="f.txt", old="two", new="2")
    assert done.text == "Edited f.txt (10 bytes, now version 2)."
    refused = await run(registry, "edit_file", path="f.txt", old="one", new="1")
    assert "2 times" in refused.text
    assert "lines 1, 3" in refused.text
    assert not (
        await run(registry, "edit_file", path="f.txt", old="one", new="1", all=True)
    ).is_error
    assert (folder / "f.txt").read_text() == "1\n2\n1\n"


@pytest.mark.parametrize(
    ("path", "old", "words"),
    [
        ("f.txt", "none", "is not in"),
        ("f.txt", "o", "2 times"),
        ("f.txt", "", "is empty"),
        ("f.txt", "new", "nothing would change"),
        ("none.txt", "x", "There is no file"),
        ("f.bin", "x", "not text"),
    ],
)
async def test_an_edit_that_cannot_be_made_is_refused_before_anyone_is_asked(
    registry: ToolRegistry, folder: Path, path: str, old: str, words: str
) -> None:
    folder.mkdir()
    (folder / "f.txt").write_text("foo new")
    (folder / "f.bin").write_bytes(b"\xff\0")
    with pytest.raises(ToolError, match=words):
        await preview(registry, "edit_file", path=path, old=old, new="new")
    output = await run(registry, "edit_file", path=path, old=old, new="new")
    assert output.is_error
    assert words in output.text
    assert (folder / "f.txt").read_text() == "foo new"


async def test_a_deletion_shows_what_goes_and_can_be_brought_back(
    registry: ToolRegistry, files: ChatFiles, folder: Path
) -> None:
    await run(registry, "write_file", path="d/f.txt", content="one\n")
    shown = await preview(registry, "delete_file", path="d/f.txt")
    assert (shown["kind"], shown["lines"]) == ("diff", [["cut", "one"]])
    assert (await run(registry, "delete_file", path="d/f.txt")).text == "Deleted d/f.txt."
    assert not (folder / "d").exists()
    assert (await run(registry, "delete_file", path="d/f.txt")).is_error
    with pytest.raises(ToolError, match="There is no file"):
        await preview(registry, "delete_file", path="d/f.txt")
    await files.restore("d/f.txt", 1, Origin("restore"))
    assert (await run(registry, "read_file", path="d/f.txt")).text == "one\n"


async def test_a_version_names_the_call_and_the_approval_that_made_it(
    registry: ToolRegistry, files: ChatFiles
) -> None:
    call = ToolContext("c-9", "r-9", approval="k-9", decision="allow_chat")
    await run(registry, "write_file", call, path="f.txt", content="x")
    (version,) = await files.versions("f.txt")
    assert version.origin == Origin("call", "r-9", "c-9", "k-9", "allow_chat")


async def test_a_repeated_call_changes_nothing_more(
    registry: ToolRegistry, files: ChatFiles
) -> None:
    write, edit, delete = context(), context(), context()
    for _ in range(2):
        first = await run(registry, "write_file", write, path="f", content="a")
        assert first.text == "Wrote f (1 byte, new file)."
    for _ in range(2):
        edited = await run(registry, "edit_file", edit, path="f", old="a", new="aa")
        assert edited.text == "Edited f (2 bytes, now version 2)."
    # The first call, once more after the second: the newer state stays.
    assert not (await run(registry, "write_file", write, path="f", content="a")).is_error
    assert await files.read("f") == b"aa"
    for _ in range(2):
        assert (await run(registry, "delete_file", delete, path="f")).text == "Deleted f."
    assert len(await files.versions("f")) == 3


@pytest.mark.parametrize("changed", [b"by hand", None])
async def test_what_was_agreed_to_is_not_done_to_another_file(
    registry: ToolRegistry, folder: Path, changed: bytes | None
) -> None:
    await run(registry, "write_file", path="f.txt", content="seen\n")
    calls: dict[str, JsonObject] = {
        "write_file": {"content": "new", "replace": True},
        "edit_file": {"old": "seen", "new": "new"},
        "delete_file": {},
    }
    asked = {name: context() for name in calls}
    for name, arguments in calls.items():
        await preview(registry, name, asked[name], path="f.txt", **arguments)
    if changed is None:
        (folder / "f.txt").unlink()
    else:
        (folder / "f.txt").write_bytes(changed)
    for name, arguments in calls.items():
        output = await run(registry, name, asked[name], path="f.txt", **arguments)
        assert output.is_error
        assert "changed since" in output.text or "no file" in output.text
    left = (folder / "f.txt").read_bytes() if (folder / "f.txt").exists() else None
    assert left == changed


async def test_some_lines_are_read_and_counted(registry: ToolRegistry) -> None:
    content = "".join(f"line {n}\n" for n in range(1, 5001))
    await run(registry, "write_file", path="f.txt", content=content)
    first = (await run(registry, "read_file", path="f.txt")).text
    assert first.startswith("line 1\nline 2\n")
    assert first.endswith(
        "line 2000\n\n[Lines 1 to 2,000 of 5,000 lines. Read on with start_line=2001.]"
    )
    some = await run(registry, "read_file", path="f.txt", start_line=4999, lines=10)
    assert some.text == "line 4999\nline 5000\n\n[Lines 4,999 to 5,000 of 5,000 lines.]"
    beyond = await run(registry, "read_file", path="f.txt", start_line=5001)
    assert beyond.is_error
    assert "has 5,000 lines" in beyond.text
    assert (await run(registry, "read_file", path="f.txt", start_line=0)).is_error


async def test_a_very_long_line_is_cut_with_words(registry: ToolRegistry) -> None:
    await run(registry, "write_file", path="f.txt", content="ü" * 100_000)
    text = (await run(registry, "read_file", path="f.txt")).text
    assert text.startswith("ü" * 24_000)
    assert len(text) < 60_000
    assert "Line 1 goes on" in text


@pytest.mark.parametrize("content", [b"\xff\xfea", b"a\0b", bytes(range(256))])
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


BAD_PATHS = ["../x", "/etc/passwd", "a\\b", "", "C:x", "a\0", "a\nb", ".HARNESS/lock"]


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_a_path_that_leads_out_is_refused_before_anyone_is_asked(
    registry: ToolRegistry, folder: Path, path: str
) -> None:
    changes: dict[str, JsonObject] = {
        "write_file": {"content": "x"},
        "edit_file": {"old": "x", "new": "y"},
        "delete_file": {},
    }
    for name, arguments in changes.items():
        with pytest.raises(ToolError, match="is refused"):
            registry.validate(name, {"path": path, **arguments})
    everything: dict[str, JsonObject] = {"read_file": {}, **changes}
    for name, arguments in everything.items():
        output = await run(registry, name, path=path, **arguments)
        assert output.is_error
        assert "is refused" in output.text
    assert not folder.exists()


async def test_too_much_content_is_refused_before_anyone_is_asked(folder: Path) -> None:
    registry = ToolRegistry(file_tools(ChatFiles(folder, FileLimits(max_file_bytes=10))))
    with pytest.raises(ToolError, match="12 bytes; the limit is 10"):
        registry.validate("write_file", {"path": "f", "content": "ü" * 6})
    registry = ToolRegistry(file_tools(ChatFiles(folder)))
    with pytest.raises(ToolError, match="the limit is 1,048,576"):
        registry.validate("write_file", {"path": "f", "content": "x" * (MAX_CONTENT_BYTES + 1)})


async def test_links_in_the_folder_are_not_followed(
    registry: ToolRegistry, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    changes: dict[str, JsonObject] = {
        "write_file": {"content": "x", "replace": True},
        "edit_file": {"old": "secret", "new": "x"},
        "delete_file": {},
    }
    (folder / "link").symlink_to(secret)
    os.link(secret, folder / "hard")
    for name in ("link", "hard"):
        assert (await run(registry, "read_file", path=name)).is_error
        for change, arguments in changes.items():
            assert (await run(registry, change, path=name, **arguments)).is_error
            with pytest.raises(ToolError, match="link"):
                await preview(registry, change, path=name, **arguments)
        assert (folder / name).exists()
    assert secret.read_text() == "secret"
    assert (await run(registry, "search_files", text="secret")).text == 'Nothing holds "secret".'
    assert (
        "Left out, since they cannot be read here: 2." in (await run(registry, "list_files")).text
    )


async def test_the_preview_is_what_the_write_then_does(
    registry: ToolRegistry, folder: Path
) -> None:
    first, second = "a\nb\nc\n", "a\nB\nc\nd\n"
    shown = await preview(registry, "write_file", path="f.txt", content=first)
    assert shown["note"] == "New file"
    assert not folder.exists()
    await run(registry, "write_file", path="f.txt", content=first)
    assert [line for _, line in shown["lines"]] == (folder / "f.txt").read_text().splitlines()

    new: JsonObject = {"path": "./f.txt", "content": second, "replace": True}
    shown = await preview(registry, "write_file", **new)
    assert shown["path"] == "f.txt"
    assert shown["note"] == "The file exists. 1 line taken out, 2 put in."
    before = (folder / "f.txt").read_text().splitlines()
    assert [line for kind, line in shown["lines"] if kind != "add"] == before
    await run(registry, "write_file", **new)
    after = (folder / "f.txt").read_text().splitlines()
    assert [line for kind, line in shown["lines"] if kind != "cut"] == after

    shown = await preview(registry, "write_file", **new)
    assert (shown["note"], shown["lines"]) == ("No change", [])


async def test_the_preview_of_a_file_that_is_no_text_says_so(
    registry: ToolRegistry, folder: Path
) -> None:
    folder.mkdir()
    (folder / "f").write_bytes(b"\xff")
    shown = await preview(registry, "write_file", path="f", content="x\n", replace=True)
    assert (
        shown["note"]
        == "The file exists and is not text that can be compared. All of it is replaced."
    )
    assert shown["lines"] == [["add", "x"]]
    shown = await preview(registry, "delete_file", path="f")
    assert "is not shown: it is no text, or too large" in shown["note"]


async def test_many_calls_at_once_leave_every_file_whole(
    registry: ToolRegistry, folder: Path
) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                run(
                    registry,
                    "write_file",
                    path=f"d{n % 4}/f{n % 10}",
                    content=str(n) * 1000,
                    replace=True,
                )
            )
            for n in range(40)
        ]
    assert not any(task.result().is_error for task in tasks)
    for path in folder.glob("d*/f*"):
        text = path.read_text()
        assert text == text[: len(text) // 1000] * 1000


async def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    registry = ToolRegistry(file_tools(ChatFiles(tmp_path / "file" / "chat")))
    output = await run(registry, "write_file", path="f", content="x")
    assert output.is_error
    assert str(tmp_path) not in output.text
    assert "is a link or a file" in output.text
