"""Ready-made tools: a calculator, a clock, the files of a chat, and memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from web.harness.builtin.calculator import calculator_tool
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.clock import clock_tools
from web.harness.builtin.files import file_tools
from web.harness.builtin.memory_tools import (
    MemoryExtension,
    memory_tools,
    register_memory_tools,
)
from web.harness.builtin.plan import plan_tool
from web.harness.subagents import delegate_tool
from web.harness.tools.tool import Tool

__all__ = [
    "ChatFiles",
    "MemoryExtension",
    "calculator_tool",
    "clock_tools",
    "delegate_tool",
    "file_tools",
    "memory_tools",
    "plan_tool",
    "register_memory_tools",
    "standard_tools",
]


def standard_tools(files: ChatFiles | Path, now: Callable[[], datetime]) -> list[Tool]:
    """All ready-made tools, with these files, or those in a folder, and the time as `now` tells it.

    Whoever looks at the files too, or has many tools made for one folder, hands in one `ChatFiles`:
    it remembers what it has read, and tells its watchers of what the tools change.
    """
    if isinstance(files, Path):
        files = ChatFiles(files, now=lambda: now().timestamp())
    return [
        calculator_tool(),
        *clock_tools(now),
        *file_tools(files),
        plan_tool(),
        delegate_tool(),
    ]
