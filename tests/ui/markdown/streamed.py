"""A page made of blocks, as a browser keeps it, and ways to stream a text into it."""

from __future__ import annotations

from random import Random

from web.chats.markdown import Block, Limits, MarkdownStream, Removed
from web.ui.markdown import Rendered, render_block

SLOT = ' data-slot=""'


class Page:
    """Applies changes as a page does: a shell that comes again is empty until its children come."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.blocks: dict[str, Block] = {}

    def apply(self, changes: list[Block | Removed]) -> None:
        for change in changes:
            if isinstance(change, Removed):
                assert not self.children(change.key)
                del self.blocks[change.key]
                continue
            if change.parent is not None:
                assert self.blocks[change.parent].shell
                index = int(change.key.split("-")[1])
                assert index == 0 or f"{change.parent}-{index - 1}" in self.blocks
            for child in self.children(change.key):
                del self.blocks[child.key]
            self.blocks[change.key] = change

    def children(self, key: str) -> list[Block]:
        found = [block for block in self.blocks.values() if block.parent == key]
        return sorted(found, key=lambda block: int(block.key.split("-")[1]))

    def tops(self) -> list[Block]:
        found = [block for block in self.blocks.values() if block.parent is None]
        found.sort(key=lambda block: int(block.key))
        assert [block.key for block in found] == [str(index) for index in range(len(found))]
        return found

    def html(self) -> str:
        """The whole page: groups of rows made one, the spans of pieces taken away."""
        return "".join(self._top(block) for block in self.tops())

    def _top(self, block: Block) -> str:
        rendered = render_block(block, self.limits)
        assert rendered.tag == "div"
        assert rendered.before.count(SLOT) == (1 if block.shell else 0)
        children = [render_block(child, self.limits) for child in self.children(block.key)]
        inner = "".join(_unwrapped(child) for child in children)
        if block.kind == "table" and children:
            inner = f"<tbody>{inner}</tbody>"
        return rendered.before.replace(SLOT, "") + inner + rendered.after


def _unwrapped(child: Rendered) -> str:
    if child.tag != "li":
        return child.before
    classes = f' class="{child.classes}"' if child.classes else ""
    return f"<li{classes}>{child.before}</li>"


def stream_pieces(pieces: list[str], limits: Limits) -> Page:
    """A text that came in these pieces, with a look at it after each."""
    source, page = MarkdownStream(limits), Page(limits)
    for piece in pieces:
        source.feed(piece)
        page.apply(source.settle())
    source.finish()
    while source.pending:
        page.apply(source.settle())
    return page


def stream(text: str, limits: Limits, random: Random) -> Page:
    """A text that came in random pieces, with a look at it now and then."""
    source, page = MarkdownStream(limits), Page(limits)
    place = 0
    while place < len(text):
        size = random.choice([1, 1, 2, 3, 5, 8, 20, 60])
        source.feed(text[place : place + size])
        place += size
        if random.random() < 0.6:
            page.apply(source.settle())
    source.finish()
    while source.pending:
        page.apply(source.settle())
    return page
