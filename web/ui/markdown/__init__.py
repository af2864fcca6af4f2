"""Markdown to safe HTML: `render_block` for a block of a stream, `render` for a whole text.

In both, links to files of the chat are finished by `with_files`.
"""

from __future__ import annotations

from .blocks import Rendered, prepare_block, render_block
from .links import with_files
from .whole import render

__all__ = ["Rendered", "prepare_block", "render", "render_block", "warm", "with_files"]

_EXAMPLES = """www.example.com $x$ **a** [b](http://example.com) <http://example.com> a@example.com
http://example.com mailto:a@example.com //example.com ![b](http://example.com "c")

```python
x = 1
```
"""


def warm() -> None:
    """Load what rendering needs at its first formula, link and code block: some 0.1 s once."""
    render(_EXAMPLES)
