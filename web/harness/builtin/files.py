"""`read_file`, `write_file` and `list_files` in one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from web.harness.builtin.diffs import change_preview, new_file_preview, replacement_preview
from web.harness.builtin.paths import parse_path
from web.harness.builtin.rooted import FolderLimits, RootedFolder
from web.harness.tools.functions import function_tool
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext
from web.harness.tools.words import describe, shown
from web.harness.values.errors import HarnessError, NotFound, ToolError
from web.harness.values.messages import JsonObject

T = TypeVar("T")


def file_tools(folder: Path, limits: FolderLimits | None = None) -> list[Tool]:
    """The tools for files below `folder`, which is made by the first write.

    Reading and listing run by themselves; writing asks, and its preview shows the difference.
    """
    rooted = RootedFolder(folder, limits)
    return [_read_tool(rooted), _write_tool(rooted), _list_tool(rooted)]


def _read_tool(rooted: RootedFolder) -> Tool:
    async def read_file(path: Annotated[str, "Relative path, such as notes/plan.md."]) -> str:
        """Reads a text file of the chat's folder."""
        content = await _on_disk(lambda: rooted.read(path))
        text = _text(content)
        if text is None:
            raise ToolError(f"{shown(path)} is not text in UTF-8 ({len(content):,} bytes).")
        return text

    return function_tool(
        read_file, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def _write_tool(rooted: RootedFolder) -> Tool:
    async def write_file(
        path: Annotated[str, "Relative path, such as notes/plan.md. Folders are made."],
        content: Annotated[str, "The whole new text of the file."],
    ) -> str:
        """Writes a text file of the chat's folder, replacing what it held."""
        data = content.encode()
        made = await _on_disk(lambda: rooted.write_atomic(path, data))
        what = "new file" if made else "replaced"
        return f"Wrote {path} ({_bytes(len(data))}, {what})."

    async def preview(arguments: JsonObject, context: ToolContext) -> JsonObject:
        try:
            return await _on_disk(lambda: _preview(rooted, **arguments))
        except HarnessError as error:
            # Nothing stops a person from allowing it, but they should know that it will fail.
            return {"kind": "text", "text": f"This will fail: {describe(error)}"}

    tool = function_tool(
        write_file,
        permission=PermissionLevel.ASK,
        replay="idempotent",
        preview=preview,
        share_signature=True,
    )
    return replace(tool, validate=_checked(tool, rooted.limits.max_file_bytes))


def _checked(tool: Tool, max_bytes: int) -> Callable[[JsonObject], JsonObject]:
    """Refuses what can never be written before a person is asked, and shows the path as it is."""
    by_signature = tool.validate

    def validate(arguments: JsonObject) -> JsonObject:
        valid = by_signature(arguments) if by_signature else arguments
        size = len(valid["content"].encode())
        if size > max_bytes:
            raise ToolError(f"The content has {size:,} bytes; the limit is {max_bytes:,}.")
        return {**valid, "path": "/".join(parse_path(valid["path"]))}

    return validate


def _list_tool(rooted: RootedFolder) -> Tool:
    async def list_files() -> str:
        """Lists all files of the chat's folder with their sizes."""
        listing = await _on_disk(rooted.walk)
        lines = [f"{entry.path} ({_bytes(entry.size)})" for entry in listing.files]
        if not lines:
            lines.append("There are no files yet.")
        if listing.more:
            lines.append("There are more files than can be listed.")
        if listing.left_out:
            lines.append(f"Left out, since they cannot be read here: {listing.left_out:,}.")
        return "\n".join(lines)

    return function_tool(
        list_files, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def _preview(rooted: RootedFolder, path: str, content: str) -> JsonObject:
    try:
        before = rooted.read(path)
    except NotFound:
        return new_file_preview(path, content)
    text = _text(before)
    if text is None:
        return replacement_preview(path, content)
    return change_preview(path, text, content)


async def _on_disk(work: Callable[[], T]) -> T:
    """Runs blocking work to its end, also when the call is stopped; disk errors in words."""
    try:
        return await run_in_thread(work, finish=True)
    except OSError as error:
        raise ToolError(f"The disk refused: {error.strerror or type(error).__name__}.") from error


def _text(content: bytes) -> str | None:
    """The text, or None for what is not UTF-8 or holds a NUL, which no text does."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _bytes(size: int) -> str:
    return f"{size:,} {'byte' if size == 1 else 'bytes'}"
