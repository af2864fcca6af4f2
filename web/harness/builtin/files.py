"""The tools for the files of a chat: read (pictures too), list, write, edit, delete."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace as replaced_in
from typing import Annotated

from web.harness.builtin.chat_files import ChatFiles, OpenFile, on_disk
from web.harness.builtin.diffs import (
    change_preview,
    deletion_preview,
    new_file_preview,
    replacement_preview,
)
from web.harness.builtin.file_search import find_tool, in_folder, search_tool
from web.harness.builtin.paths import parse_path
from web.harness.builtin.texts import MAX_TEXT_BYTES, Extract, extract, replaced, text_of
from web.harness.builtin.versions import call_origin
from web.harness.tools.encodings import utf8_copy
from web.harness.tools.functions import function_tool
from web.harness.tools.outputs import MAX_PICTURE_BYTES
from web.harness.tools.picture_faults import picture_fault
from web.harness.tools.pictures import MAX_PIXELS, MODEL_TYPES, image_block, is_too_large
from web.harness.tools.tool import PermissionLevel, Preview, Tool, ToolContext, ToolOutput
from web.harness.tools.words import describe, shown
from web.harness.values.errors import HarnessError, NotFound, ToolError
from web.harness.values.messages import JsonObject, TextBlock
from web.harness.values.text import amount

MAX_CONTENT_BYTES = 1024 * 1024
"""Of a text that a model writes in one call."""

MAX_READ_BYTES = 50_000
"""Of what one call reads."""
READ_LINES = 2_000

_REMEMBERED = 256

NAMED_LEFT_OUT = 5

NO_FILES = "There are no files yet."

_Shows = Callable[..., Awaitable[JsonObject]]
"""Takes the context, and the arguments of the call by their names."""

Path = Annotated[str, "Relative path, such as notes/plan.md."]


def file_tools(files: ChatFiles) -> list[Tool]:
    """The tools for a chat's files.

    Looking runs by itself; changing asks, and its preview shows the difference. A change that was
    agreed to is made only while the file is what the person saw.
    """
    seen = _Seen()
    return [
        _read_tool(files),
        _write_tool(files, seen),
        _list_tool(files),
        _edit_tool(files, seen),
        find_tool(files),
        search_tool(files),
        _delete_tool(files, seen),
    ]


class _Seen:
    """What a person was shown of a file, for each call that asks: the digest, '' for no file."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], str] = {}

    def put(self, context: ToolContext, path: str, sha256: str) -> None:
        while len(self._digests) >= _REMEMBERED:
            del self._digests[next(iter(self._digests))]
        self._digests[context.call_id, path] = sha256

    def take(self, context: ToolContext, path: str) -> str | None:
        return self._digests.pop((context.call_id, path), None)


def _read_tool(files: ChatFiles) -> Tool:
    async def read_file(
        path: Path,
        start_line: Annotated[int, "The first line, counted from 1."] = 1,
        lines: Annotated[int, "How many lines at most."] = READ_LINES,
    ) -> ToolOutput:
        """Reads a text file of the chat's folder, or some of its lines; looks at a picture."""
        if start_line < 1 or lines < 1:
            raise ToolError("start_line and lines must be 1 or more.")
        async with files.open(path) as file:
            found = await on_disk(
                lambda: extract(file.descriptor, start_line, lines, MAX_READ_BYTES)
            )
            if found is not None:
                return ToolOutput.of(_with_range(path, found))
            if file.media_type in MODEL_TYPES:
                return await _picture(path, file)
            found, encoding = await on_disk(lambda: _foreign(file, start_line, lines))
            if found is not None:
                return ToolOutput.of(f"[Read as {encoding}.]\n{_with_range(path, found)}")
            raise ToolError(
                f"{shown(path)} is not text in UTF-8, nor in another encoding that is known for "
                f"sure ({_bytes(file.size)}, {file.media_type})."
            )

    return function_tool(
        read_file, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def _foreign(file: OpenFile, start: int, count: int) -> tuple[Extract | None, str]:
    """Lines of a text in another encoding, and how that is called; None for no text. Blocks."""
    with utf8_copy(file.descriptor) as copy:
        if copy is None:
            return None, ""
        return extract(copy[0], start, count, MAX_READ_BYTES), copy[2]


async def _picture(path: str, file: OpenFile) -> ToolOutput:
    """A picture for a model to see, and in words what it is, as text for those who cannot."""
    if file.size > MAX_PICTURE_BYTES:
        raise ToolError(
            f"{shown(path)} is a picture of {amount(file.size)}; one of at most "
            f"{amount(MAX_PICTURE_BYTES)} can be looked at."
        )
    data = await file.read(0, MAX_PICTURE_BYTES)
    block, fault = image_block(data, path.rpartition("/")[2]), picture_fault(data)
    if block is None or fault:
        raise ToolError(
            f"{shown(path)} is no picture that can be looked at: it begins like one of type "
            f"{file.media_type}, but {fault or 'it is broken'}."
        )
    if is_too_large((block.width, block.height)):
        raise ToolError(
            f"{shown(path)} is a picture of {block.width:,} x {block.height:,} pixels; one of at "
            f"most {MAX_PIXELS:,} pixels can be looked at."
        )
    return ToolOutput((TextBlock(block.line), block))


def _with_range(path: str, found: Extract) -> str:
    """The lines, and which they are of how many where they are not all."""
    if found.whole:
        return found.text
    total = f"{found.total:,} {'line' if found.total == 1 else 'lines'}"
    if found.last < found.first:
        raise ToolError(f"{shown(path)} has {total}; there is no line {found.first:,}.")
    words = f"[Lines {found.first:,} to {found.last:,} of {total}."
    if found.cut:
        words += f" Line {found.last:,} goes on; it is too long to be shown whole."
    if found.last < found.total:
        words += f" Read on with start_line={found.last + 1}."
    break_before = "" if found.text.endswith("\n") else "\n"
    return f"{found.text}{break_before}\n{words}]"


def _list_tool(files: ChatFiles) -> Tool:
    async def list_files(
        folder: Annotated[str, "Only what lies in this folder, such as notes."] = "",
    ) -> str:
        """Lists the files of the chat's folder with their sizes."""
        survey = await files.survey()
        inside = in_folder(folder)
        lines = [f"{file.path} ({_bytes(file.size)})" for file in survey.files if inside(file.path)]
        if not lines:
            lines.append(f"There are no files in {shown(folder)}." if folder else NO_FILES)
        if survey.more:
            lines.append("There are more files than can be listed.")
        if survey.left_out:
            lines.append(f"Left out, since they cannot be read here: {survey.left_out:,}.")
            lines += [f"- {shown(path)}: {why}" for path, why in survey.named[:NAMED_LEFT_OUT]]
        return "\n".join(lines)

    return function_tool(
        list_files, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def _write_tool(files: ChatFiles, seen: _Seen) -> Tool:
    async def write_file(
        path: Annotated[str, "Relative path, such as notes/plan.md. Folders are made."],
        content: Annotated[str, "The whole new text of the file."],
        context: ToolContext,
        replace: Annotated[bool, "Whether a file that exists may be replaced."] = False,
    ) -> str:
        """Writes a text file of the chat's folder. One that exists is replaced if asked for."""
        data = content.encode()
        version = await files.write(
            path, data, call_origin(context), replace=replace, seen=seen.take(context, path)
        )
        if version.origin.call_id != context.call_id:
            return f"{path} holds exactly this already ({_bytes(len(data))})."
        what = "new file" if version.number == 1 else f"now version {version.number}"
        return f"Wrote {path} ({_bytes(len(data))}, {what})."

    async def preview(
        context: ToolContext, path: str, content: str, replace: bool = False
    ) -> JsonObject:
        sha256, before = await _before(files, path)
        if sha256 and not replace and before != content:
            raise ToolError(
                f"There is a file {shown(path)} already. To replace all of it, send replace=true; "
                "to change a part of it, use edit_file."
            )
        seen.put(context, path, sha256)
        if not sha256:
            return await on_disk(lambda: new_file_preview(path, content))
        if before is None:
            return await on_disk(lambda: replacement_preview(path, content))
        return await on_disk(lambda: change_preview(path, before, content))

    def check(arguments: JsonObject) -> None:
        size = len(arguments["content"].encode())
        limit = min(MAX_CONTENT_BYTES, files.limits.max_file_bytes)
        if size > limit:
            raise ToolError(f"The content has {size:,} bytes; the limit is {limit:,}.")

    return _asking(
        function_tool(write_file, replay="idempotent", share_signature=True), preview, check
    )


def _edit_tool(files: ChatFiles, seen: _Seen) -> Tool:
    async def edit_file(
        path: Path,
        old: Annotated[str, "The text to replace, exactly as it stands in the file."],
        new: Annotated[str, "The text in its place."],
        context: ToolContext,
        all: Annotated[bool, "Whether to replace it wherever it stands."] = False,
    ) -> str:
        """Replaces a piece of text in a file of the chat's folder."""
        version = await files.edit(
            path, old, new, call_origin(context), every=all, seen=seen.take(context, path)
        )
        return f"Edited {path} ({_bytes(version.size)}, now version {version.number})."

    async def preview(
        context: ToolContext, path: str, old: str, new: str, all: bool = False
    ) -> JsonObject:
        sha256, before = await _before(files, path)
        if not sha256:
            raise ToolError(f"There is no file {shown(path)}.")
        if before is None:
            raise ToolError(
                f"{shown(path)} cannot be edited: it is not text in UTF-8, or has more than "
                f"{MAX_TEXT_BYTES:,} bytes. A text in another encoding that read_file reads can be "
                "written anew, in UTF-8, with write_file and replace=true."
            )
        text = before
        shows = await on_disk(
            lambda: change_preview(path, text, replaced(path, text, old, new, every=all))
        )
        seen.put(context, path, sha256)
        return shows

    return _asking(function_tool(edit_file, replay="idempotent", share_signature=True), preview)


def _delete_tool(files: ChatFiles, seen: _Seen) -> Tool:
    async def delete_file(path: Path, context: ToolContext) -> str:
        """Deletes a file of the chat's folder. The person can bring it back."""
        await files.delete(path, call_origin(context), seen=seen.take(context, path))
        return f"Deleted {path}."

    async def preview(context: ToolContext, path: str) -> JsonObject:
        sha256, before = await _before(files, path)
        if not sha256:
            raise ToolError(f"There is no file {shown(path)}.")
        seen.put(context, path, sha256)
        return await on_disk(lambda: deletion_preview(path, before))

    return _asking(function_tool(delete_file, replay="idempotent", share_signature=True), preview)


def _asking(tool: Tool, shows: _Shows, check: Callable[[JsonObject], None] | None = None) -> Tool:
    """The tool with its preview, and with its path as it is: what is refused, is before anyone is
    asked."""
    by_signature = tool.validate

    def validate(arguments: JsonObject) -> JsonObject:
        valid = by_signature(arguments) if by_signature else arguments
        if check is not None:
            check(valid)
        return {**valid, "path": "/".join(parse_path(valid["path"]))}

    return replaced_in(tool, validate=validate, preview=_refusing(shows))


def _refusing(shows: _Shows) -> Preview:
    async def preview(arguments: JsonObject, context: ToolContext) -> JsonObject | None:
        try:
            return await shows(context, **arguments)
        except ToolError:
            raise
        except HarnessError as error:
            # Nobody has to agree to what will fail.
            raise ToolError(describe(error)) from error

    return preview


async def _before(files: ChatFiles, path: str) -> tuple[str, str | None]:
    """The digest of a file and its text; '' for no file, None for no text, or a very long one."""
    try:
        async with files.open(path) as file:
            if file.size > MAX_TEXT_BYTES:
                return file.sha256, None
            return await on_disk(lambda: _digest_and_text(file))
    except NotFound:
        return "", None


def _digest_and_text(file: OpenFile) -> tuple[str, str | None]:
    data = file.read_now(0, MAX_TEXT_BYTES)
    return hashlib.sha256(data).hexdigest(), text_of(data)


def _bytes(size: int) -> str:
    return f"{size:,} {'byte' if size == 1 else 'bytes'}"
