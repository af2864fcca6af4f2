"""Ready-made tools: a calculator, a clock, and files in one folder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from web.harness.builtin.calculator import calculator_tool
from web.harness.builtin.clock import clock_tools
from web.harness.builtin.files import file_tools
from web.harness.tools.tool import Tool

__all__ = ["calculator_tool", "clock_tools", "file_tools", "standard_tools"]


def standard_tools(folder: Path, now: Callable[[], datetime]) -> list[Tool]:
    """All ready-made tools, with files in `folder` and the time as `now` tells it."""
    return [calculator_tool(), *clock_tools(now), *file_tools(folder)]
