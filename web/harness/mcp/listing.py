"""The lists of a server: read page by page, and read again when the server says they changed."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from web.harness.mcp.mending import Report

MAX_PAGES = 100
MAX_ENTRIES = 5_000
READ_AGAIN_SECONDS = (0.25, 30.0)
"""The first and the longest wait before a list is read again that changes all the time."""
WAITED_SECONDS = 1.0
"""A list that is held back for longer is not waited for."""

_T = TypeVar("_T")

Page = tuple[Sequence[_T], str | None]
"""The entries of a page, and the cursor of the next; None where it is the last."""


class Listing(Generic[_T]):
    """One list as it was last read. `name` is what people call it.

    `entries` is None until it is known. `stale` is set when it has to be read (again), `settled`
    while it need not be.
    """

    def __init__(self, name: str, fetch: Callable[[str | None], Awaitable[Page[_T]]]) -> None:
        self.name = name
        self.entries: tuple[_T, ...] | None = None
        self.stale = anyio.Event()
        self.settled = anyio.Event()
        self.settled.set()
        self._fetch = fetch
        self._pause = READ_AGAIN_SECONDS[0]
        self._read_at = -math.inf
        self._held_back = False

    async def due(self) -> None:
        """Returns when it has to be read (again): at once, unless it was read a moment ago.

        The longer it goes on changing, the longer it is held back.
        """
        await self.stale.wait()
        first, longest = READ_AGAIN_SECONDS
        now = anyio.current_time()
        if now >= self._read_at + 2 * self._pause:
            self._pause = first
        wait = self._read_at + self._pause - now
        if wait > 0:
            self._held_back = self._pause > WAITED_SECONDS
            if self._held_back:
                self.settled.set()
            self._pause = min(2 * self._pause, longest)
            await anyio.sleep(wait)
            self._held_back = False

    def outdate(self) -> None:
        """It has to be read (again)."""
        if self.settled.is_set() and not self._held_back:
            self.settled = anyio.Event()
        self.stale.set()

    def settle(self) -> None:
        """It was read, or could not be; unless it has to be read once more, that is all."""
        self._read_at = anyio.current_time()
        if not self.stale.is_set():
            self.settled.set()

    async def read(
        self, report: Report, fit: Callable[[tuple[_T, ...]], Awaitable[tuple[_T, ...]]]
    ) -> None:
        """Reads it to its end, or as far as can be. Raises what the SDK raises.

        The entries stay as they were then. `fit` makes those that came fit to be known.
        """
        self.stale = anyio.Event()
        found: list[_T] = []
        cursors: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            entries, cursor = await self._fetch(cursor)
            found += entries
            if cursor is None:
                break
            if cursor in cursors or len(found) >= MAX_ENTRIES:
                report("warning", f"The {self.name} does not end; what came was kept.")
                break
            cursors.add(cursor)
        else:
            report("warning", f"The {self.name} has over {MAX_PAGES} pages; it was cut.")
        self.entries = await fit(tuple(found[:MAX_ENTRIES]))


class Lists:
    """The four lists of one connected server; those that it does not offer are empty."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.tools = Listing("tool list", self._tools)
        self.resources = Listing("resource list", self._resources)
        self.templates = Listing("list of resource templates", self._templates)
        self.prompts = Listing("prompt list", self._prompts)
        capabilities = client.server_capabilities
        if capabilities.tools is None:
            self.tools.entries = ()
        if capabilities.resources is None:
            self.resources.entries = self.templates.entries = ()
        if capabilities.prompts is None:
            self.prompts.entries = ()

    @property
    def later(self) -> list[Listing[Any]]:
        """Those that nobody waits for."""
        lists: list[Listing[Any]] = [self.resources, self.templates, self.prompts]
        return [each for each in lists if each.entries is None]

    def read_so_far(self) -> dict[str, tuple[Any, ...]]:
        """The lists that are known, by the names of the fields of a status."""
        lists: dict[str, Listing[Any]] = {
            "tools": self.tools,
            "resources": self.resources,
            "templates": self.templates,
            "prompts": self.prompts,
        }
        return {name: each.entries for name, each in lists.items() if each.entries is not None}

    def heard(self, message: object) -> None:
        """Takes a notification; the lists that it concerns become stale."""
        if isinstance(message, types.ToolListChangedNotification):
            self.tools.outdate()
        elif isinstance(message, types.ResourceListChangedNotification):
            self.resources.outdate()
            self.templates.outdate()
        elif isinstance(message, types.PromptListChangedNotification):
            self.prompts.outdate()

    def all_stale(self) -> None:
        """Nothing was heard for a while, so each may be another."""
        for each in (self.tools, self.resources, self.templates, self.prompts):
            each.outdate()

    async def _tools(self, cursor: str | None) -> Page[types.Tool]:
        page = await self._client.list_tools(cursor=cursor)
        return page.tools, page.next_cursor

    async def _resources(self, cursor: str | None) -> Page[types.Resource]:
        page = await self._client.list_resources(cursor=cursor)
        return page.resources, page.next_cursor

    async def _templates(self, cursor: str | None) -> Page[types.ResourceTemplate]:
        try:
            page = await self._client.list_resource_templates(cursor=cursor)
        except MCPError as error:
            # Resources without templates are common.
            if error.code != types.METHOD_NOT_FOUND:
                raise
            return (), None
        return page.resource_templates, page.next_cursor

    async def _prompts(self, cursor: str | None) -> Page[types.Prompt]:
        page = await self._client.list_prompts(cursor=cursor)
        return page.prompts, page.next_cursor
