"""Markdown blocks to safe HTML: `render_block` for a block of a stream, `render` for a whole text."""

from __future__ import annotations

from .blocks import Rendered, render_block
from .whole import render

__all__ = ["Rendered", "render", "render_block"]
