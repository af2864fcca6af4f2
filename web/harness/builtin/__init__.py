"""Ready-made tools: a calculator, a clock, and the files of a chat."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from web.harness.builtin.calculator import calculator_tool
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.clock import clock_tools
from web.harness.builtin.files import file_tools
from web.harness.tools.tool import Tool

__all__ = ["ChatFiles", "calculator_tool", "clock_tools", "file_tools", "standard_tools"]


def standard_tools(files: ChatFiles | Path, now: Callable[[], datetime]) -> list[Tool]:
    """All ready-made tools, with these files, or those in a folder, and the time as `now` tells it.

    Whoever looks at the files too, or has many tools made for one folder, hands in one `ChatFiles`:
    it remembers what it has read, and tells its watchers of what the tools change.
    """
    if isinstance(files, Path):
        files = ChatFiles(files, now=lambda: now().timestamp())
    return [calculator_tool(), *clock_tools(now), *file_tools(files)]
