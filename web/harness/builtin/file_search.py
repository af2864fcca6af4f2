"""`find_files` by name and `search_files` by content, in a chat's files."""

from __future__ import annotations

import contextlib
import fnmatch
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from web.harness.builtin.chat_files import ChatFiles, on_disk
from web.harness.builtin.paths import parse_path
from web.harness.builtin.texts import lines_of
from web.harness.builtin.versions import FileInfo
from web.harness.tools.encodings import marked_copy
from web.harness.tools.functions import function_tool
from web.harness.tools.tool import PermissionLevel, Tool
from web.harness.tools.words import shown
from web.harness.values.errors import HarnessError, ToolError

MAX_FOUND = 200
"""Of the files or lines that one answer names."""
MAX_PATTERN_CHARS = 300
SEARCH_SECONDS = 5.0
LINE_CHARS = 200
"""Of a line that is shown, around what was looked for."""

_LINES_BETWEEN_LOOKS = 2_000


def find_tool(files: ChatFiles) -> Tool:
    async def find_files(
        pattern: Annotated[
            str,
            "Such as *.md for a name in any folder, or notes/**/plan-?.txt for a path; * stands "
            "for any part of a name, ** for any folders. Case does not matter.",
        ],
    ) -> str:
        """Finds files of the chat's folder by their names."""
        fits = by_pattern(pattern)
        survey = await files.survey()
        names = _Names(fits)
        await on_disk(lambda: names.look_at(survey.files), names.stop)
        return names.answer(pattern)

    return function_tool(
        find_files, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def search_tool(files: ChatFiles) -> Tool:
    async def search_files(
        text: Annotated[str, "What to look for, as plain text within one line."],
        pattern: Annotated[str, "Only in files that fit, such as *.md."] = "*",
        folder: Annotated[str, "Only in this folder."] = "",
        match_case: Annotated[bool, "Whether case matters."] = False,
    ) -> str:
        """Finds lines of the chat's text files by what they hold."""
        if not text or "\n" in text:
            raise ToolError("Give a text to look for that is in one line and not empty.")
        fits, inside = by_pattern(pattern), in_folder(folder)
        chosen = [file for file in await files.list() if inside(file.path)]
        search = _Search(text if match_case else text.casefold(), match_case, fits)
        await on_disk(lambda: search.run(files, chosen), search.stop)
        return search.answer(text)

    return function_tool(
        search_files, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )


def in_folder(folder: str) -> Callable[[str], bool]:
    """Whether a path lies in that folder; all do in ''. Raises ToolError as `parse_path` does."""
    if folder in ("", ".", "./"):
        return lambda path: True
    prefix = "/".join(parse_path(folder.removesuffix("/"))) + "/"
    return lambda path: path.startswith(prefix)


def by_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits a pattern. One without `/` is that of a name, in whatever folder."""
    if not pattern.strip() or len(pattern) > MAX_PATTERN_CHARS:
        raise ToolError(f"A pattern has 1 to {MAX_PATTERN_CHARS} characters, such as *.md.")
    wanted = pattern.casefold().removeprefix("./").split("/")
    if len(wanted) == 1:
        return lambda path: fnmatch.fnmatchcase(path.rpartition("/")[2].casefold(), wanted[0])
    return lambda path: _fits(path.casefold().split("/"), wanted)


def _fits(names: list[str], wanted: list[str]) -> bool:
    """Name by name. `reached` holds how many names the pattern may have taken so far."""
    reached = {0}
    for part in wanted:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            reached = {
                taken + 1
                for taken in reached
                if taken < len(names) and fnmatch.fnmatchcase(names[taken], part)
            }
    return len(names) in reached


@dataclass(slots=True)
class _Names:
    """The files whose names fit. A thread looks at them; it ends itself."""

    fits: Callable[[str], bool]
    found: list[str] = field(default_factory=list)
    left: int = 0
    stopped: bool = False

    def look_at(self, files: Sequence[FileInfo]) -> None:
        end = time.monotonic() + SEARCH_SECONDS
        for done, file in enumerate(files):
            if self.stopped or time.monotonic() > end:
                self.left = len(files) - done
                return
            if self.fits(file.path):
                self.found.append(file.path)

    def stop(self) -> None:
        self.stopped = True

    def answer(self, pattern: str) -> str:
        lines = self.found[:MAX_FOUND] or [f"No file fits {shown(pattern)}."]
        lines += _more(len(self.found))
        if self.left:
            lines.append(
                f"Stopped after {SEARCH_SECONDS:g} seconds, with {self.left:,} more files to look "
                "at. Give a simpler pattern."
            )
        return "\n".join(lines)


@dataclass(slots=True)
class _Search:
    """One search through those of some files whose names fit. A thread runs it; it ends itself."""

    wanted: str
    match_case: bool
    fits: Callable[[str], bool]
    found: list[str] = field(default_factory=list)
    no_text: int = 0
    not_searched: int = 0
    late: bool = False

    def run(self, files: ChatFiles, chosen: list[FileInfo]) -> None:
        end = time.monotonic() + SEARCH_SECONDS
        for done, file in enumerate(chosen):
            self.late = self.late or time.monotonic() > end
            if self.late or len(self.found) > MAX_FOUND:
                self.not_searched = len(chosen) - done
                return
            # It may be gone, or something else, by now.
            with contextlib.suppress(HarnessError, OSError):
                if self.fits(file.path):
                    self._look_into(files, file.path, end)

    def stop(self) -> None:
        self.late = True

    def _look_into(self, files: ChatFiles, path: str, end: float) -> None:
        with files.open_now(path) as opened, marked_copy(opened) as descriptor:
            for count, (number, line) in enumerate(lines_of(descriptor)):
                if b"\0" in line:
                    self.no_text += 1
                    return
                if count % _LINES_BETWEEN_LOOKS == 0 and (self.late or time.monotonic() > end):
                    self.late = True
                    return
                text = line.decode(errors="replace").rstrip("\r\n")
                at = (text if self.match_case else text.casefold()).find(self.wanted)
                if at >= 0:
                    self.found.append(f"{path}:{number}: {_around(text, at)}")
                    if len(self.found) > MAX_FOUND:
                        return

    def answer(self, text: str) -> str:
        lines = self.found[:MAX_FOUND] or [f"Nothing holds {shown(text)}."]
        if len(self.found) > MAX_FOUND:
            lines.append(f"There is more: the first {MAX_FOUND} lines are shown.")
        elif self.late:
            lines.append(
                f"Stopped after {SEARCH_SECONDS:g} seconds, in the middle of a file and with "
                f"{self.not_searched:,} more to search. Give a pattern or a folder."
            )
        if self.no_text:
            lines.append(f"Files that are not text: {self.no_text:,}.")
        return "\n".join(lines)


def _around(text: str, at: int) -> str:
    """The line, or what is around a place in it, without the space at its start."""
    if len(text) <= LINE_CHARS:
        return text.strip()
    start = max(0, min(at - LINE_CHARS // 4, len(text) - LINE_CHARS))
    end = start + LINE_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _more(found: int) -> list[str]:
    return [f"There are {found - MAX_FOUND:,} more."] if found > MAX_FOUND else []
