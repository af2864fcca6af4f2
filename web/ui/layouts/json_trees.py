"""JSON as a tree of what can be opened and closed, without script."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from web.ui.markdown.code import plain_code

MAX_NODES = 4_000
MAX_STRING_CHARS = 2_000
MAX_DEPTH = 40


def json_tree(data: bytes) -> Markup | None:
    """The tree as HTML; None for what is no JSON, or is nested too deep to be shown."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
        return _Tree().html(value)
    except (ValueError, RecursionError):
        return None


class _Tree:
    """Writes nodes until there are too many, and then says how many are left out."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self._pieces: list[str] = []

    def html(self, value: Any) -> Markup:
        self._pieces.append('<ul class="tree">')
        self._node("", value, 0)
        self._pieces.append("</ul>")
        return Markup("".join(self._pieces))  # noqa: S704 (every piece of it is escaped)

    def _node(self, name: str, value: Any, depth: int) -> None:
        self._left -= 1
        if isinstance(value, dict) and value:
            self._branch(name, value.items(), f"{{{len(value):,}}}", len(value), depth)
        elif isinstance(value, list) and value:
            self._branch(name, enumerate(value), f"[{len(value):,}]", len(value), depth)
        else:
            self._pieces.append(f"<li>{_name(name)}{_leaf(value)}</li>")

    def _branch(
        self, name: str, items: Iterable[tuple[Any, Any]], size: str, count: int, depth: int
    ) -> None:
        opened = " open" if depth < 2 and count <= 100 else ""
        self._pieces.append(
            f"<li><details{opened}><summary>{_name(name)}<small>{size}</small></summary><ul>"
        )
        shown = 0
        for key, value in items:
            if self._left <= 0 or depth >= MAX_DEPTH:
                break
            self._node(str(key), value, depth + 1)
            shown += 1
        if shown < count:
            self._pieces.append(f"<li><small>{count - shown:,} more, not shown</small></li>")
        self._pieces.append("</ul></details></li>")


def _name(name: str) -> str:
    return f"<b>{plain_code(_shortened(name))}</b> " if name else ""


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        text = plain_code(json.dumps(_shortened(value), ensure_ascii=False))
        return f'<span class="s" dir="auto">{text}</span>'
    if isinstance(value, bool) or value is None:
        return f'<span class="kc">{json.dumps(value)}</span>'
    if isinstance(value, int | float):
        return f'<span class="m">{escape(_shortened(repr(value)))}</span>'
    return "<span>{}</span>" if isinstance(value, dict) else "<span>[]</span>"


def _shortened(text: str) -> str:
    if len(text) <= MAX_STRING_CHARS:
        return text
    return f"{text[:MAX_STRING_CHARS]}… ({len(text) - MAX_STRING_CHARS:,} more characters)"
