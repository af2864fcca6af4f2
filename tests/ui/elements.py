"""What the tests of elements share: parts, their HTML, and a reader of it."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser

from markupsafe import escape

from web.chats.markdown.blocks import Block
from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Call, CallStatus, PartData
from web.ui.rendering.fragments import Fragments

VOID = {"input", "img", "br", "hr", "meta", "link"}


@dataclass(frozen=True)
class PlainBlock:
    """A block shown as its escaped source; a shell as a table of which only the head is there."""

    tag: str
    classes: str
    before: str
    after: str = ""


def render_plainly(block: Block) -> PlainBlock:
    text = str(escape(block.source))
    if block.shell:
        head = f'<table data-slot=""><thead><tr><th>{text}</th></tr></thead>'
        return PlainBlock("div", "md", f'<div class="scroll">{head}', "</table></div>")
    if block.kind == "rows":
        return PlainBlock("tbody", "", f"<tr><td>{text}</td></tr>")
    return PlainBlock("div", "md", f"<p>{text}</p>")


class Elements(HTMLParser):
    """The elements of a piece of HTML; fails if they are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.roots = 0
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.roots += not self.open
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]

    def buttons(self) -> set[tuple[str | None, str | None]]:
        return {(each.get("name"), each.get("value")) for each in self.named("button")}


def show(fragments: Fragments, chat: Channel, data: PartData, id: str = "p1") -> str:
    chat.put(id, "log", data)
    part = chat.get(id)
    assert part is not None
    return fragments.element(chat.name, part)


def call(status: CallStatus = "done", **more: object) -> Call:
    fields: dict[str, object] = {
        "run_id": "r1",
        "call_id": "k1",
        "name": "write_file",
        "status": status,
        "arguments": {"path": "a.txt"},
    }
    return Call(**(fields | more))  # type: ignore[arg-type]
