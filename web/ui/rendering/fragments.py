"""From parts to HTML: the page and the stream get every element from here, by one template."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

from jinja2 import Environment, Template
from markupsafe import Markup

from web.chats.markdown.blocks import Block
from web.chats.parts.channel import Channel, Part
from web.chats.parts.kinds import MarkdownBlock, PartData, Row
from web.ui.markdown import with_files
from web.ui.rendering.slices import Slices
from web.ui.rendering.templating import ARGUMENT_LIMIT

_SLOT = ' data-slot=""'


class BlockHtml(Protocol):
    """A block of an answer as safe HTML: what lies in a `tag` with these `classes` ('' for none).

    What lies in a shell comes between `before` and `after`, and the first ` data-slot=""` of
    `before` is on the element that holds it. For any other block `after` is ''.
    """

    @property
    def tag(self) -> str: ...
    @property
    def classes(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...


RenderBlock = Callable[[Block], BlockHtml]
PrepareBlock = Callable[[Block], Awaitable[None]]
"""Does in a thread what would take `RenderBlock` long."""


class Rendered(NamedTuple):
    """The element of a part at one version: `before` and `after` what lies in its slot.

    `after` is '' where it has no slot.
    """

    version: int
    before: str
    after: str
    whole: str


class Fragments:
    """Renders parts. Keeps the last rendering of each on the part itself, by version.

    `environment` comes from `make_environment`. All that a model wrote is escaped, but for what
    `render_block` returns.
    """

    def __init__(
        self,
        environment: Environment,
        render_block: RenderBlock,
        prepare_block: PrepareBlock | None = None,
    ) -> None:
        self._environment = environment
        self._render_block = render_block
        self._prepare_block = prepare_block
        self._templates: dict[str, Template] = {}
        # What a model wrote cannot hold the mark: nobody outside this object knows it.
        self._mark = secrets.token_hex(16)

    async def warm(self, channel: str, parts: Iterable[Part]) -> None:
        """Renders what is not rendered yet, letting others have the event loop in between."""
        slices = Slices()
        for part in parts:
            if _kept(part):
                continue
            if self._prepare_block is not None and isinstance(part.data, MarkdownBlock):
                await self._prepare_block(part.data.block)
            self._rendered(channel, part)
            await slices.pause()

    def element(self, channel: str, part: Part) -> str:
        """The whole element of a part, its slot empty: what a frame carries."""
        return self._rendered(channel, part).whole

    def region(self, channel: Channel, slot: str, *, current: str = "") -> Markup:
        """All parts of a slot, with what lies in them, for a page.

        The row of the chat `current` is marked as the page that is open.
        """
        pieces: list[str] = []
        self._collect(channel, slot, current, pieces)
        return Markup("".join(pieces))  # noqa: S704 (templates escaped every piece)

    async def gathered(self, channel: Channel, slot: str) -> Markup:
        """The same of a slot with thousands of parts, letting others have the event loop in
        between. What changes meanwhile has a version of its own, and comes by the stream."""
        pieces: list[str] = []
        slices = Slices()
        for part in channel.slot(slot):
            rendered = self._rendered(channel.name, part)
            pieces.append(rendered.before)
            if rendered.after:
                self._collect(channel, part.id, "", pieces)
                pieces.append(rendered.after)
            await slices.pause()
        return Markup("".join(pieces))  # noqa: S704 (templates escaped every piece)

    def regions(
        self,
        chats: Channel,
        chat: Channel | None = None,
        *,
        current: str = "",
        log: Markup | None = None,
    ) -> Callable[[str, str], Markup]:
        """`region(channel name, slot)` as page templates call it, over these channels. `log` is
        what was gathered of the chat's."""
        channels = {channel.name: channel for channel in (chats, chat) if channel is not None}

        def region(name: str, slot: str) -> Markup:
            if log is not None and chat is not None and (name, slot) == (chat.name, "log"):
                return log
            return self.region(channels[name], slot, current=current)

        return region

    def _collect(self, channel: Channel, slot: str, current: str, pieces: list[str]) -> None:
        for part in channel.slot(slot):
            if isinstance(part.data, Row) and part.data.chat_id == current:
                pieces.append(self._render(channel.name, part, current=True).whole)
                continue
            rendered = self._rendered(channel.name, part)
            pieces.append(rendered.before)
            if rendered.after:
                self._collect(channel, part.id, current, pieces)
                pieces.append(rendered.after)

    def _rendered(self, channel: str, part: Part) -> Rendered:
        kept = _kept(part)
        if kept is None:
            part.rendered = kept = self._render(channel, part)
        return kept

    def _render(self, channel: str, part: Part, *, current: bool = False) -> Rendered:
        if isinstance(part.data, MarkdownBlock):
            return self._render_markdown(channel, part, part.data.block)
        html = self._template(part.data).render(
            id=part.id,
            version=part.version,
            channel=channel,
            data=part.data,
            slot=self._mark,
            current=current,
            arguments_limit=ARGUMENT_LIMIT,
        )
        before, _, after = html.partition(self._mark)
        return Rendered(part.version, before, after, before + after)

    def _render_markdown(self, channel: str, part: Part, block: Block) -> Rendered:
        # No template: text streams as hundreds of blocks a second, and each would cost 30 µs.
        html = self._render_block(block)
        classes = f' class="{html.classes}"' if html.classes else ""
        # Code and cells keep the direction of what they lie in.
        direction = ' dir="auto"' if html.tag == "div" else ""
        attributes = f'id="{part.id}"{classes} data-part data-version="{part.version}"{direction}'
        files = f"/chats/{channel}/files/"
        inner = with_files(html.before, files)
        if block.shell:
            inner = inner.replace(_SLOT, f' data-slot="{part.id}"', 1)
        before = f"<{html.tag} {attributes}>{inner}"
        after = f"{with_files(html.after, files)}</{html.tag}>"
        whole = before + after
        if not block.shell:
            before, after = whole, ""
        return Rendered(part.version, before, after, whole)

    def _template(self, data: PartData) -> Template:
        template = self._templates.get(data.kind)
        if template is None:
            template = self._environment.get_template(f"parts/{data.kind}.html")
            self._templates[data.kind] = template
        return template


def _kept(part: Part) -> Rendered | None:
    """The last rendering, if the part did not change since."""
    kept = part.rendered
    return kept if isinstance(kept, Rendered) and kept.version == part.version else None
