"""Frames: a reader that applies them ends with what is there, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from web.chats.parts.channel import Channel, Clock
from web.chats.parts.kinds import Row
from web.paths import templates_dir
from web.ui.markdown import render_block
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.templating import make_environment
from web.ui.stream.frames import Cursor, Frames

pytestmark = pytest.mark.anyio

MANY = 1500


class Page:
    """Applies frames as static/parts.js does, to one slot."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.versions: dict[str, int] = {}

    def apply(self, frame: str | None) -> None:
        if frame is None:
            return
        parts: list[dict[str, Any]] = json.loads(frame)["channels"][0]["parts"]
        for part in parts:
            id = part["id"]
            if part["version"] <= self.versions.get(id, -1):
                continue
            self.versions[id] = part["version"]
            if id in self.order:
                self.order.remove(id)
            if not part.get("gone"):
                after = part["after"]
                self.order.insert(self.order.index(after) + 1 if after else 0, id)


def row(number: int, rank: float) -> tuple[str, str, Row, float]:
    return f"r-{number}", "chats", Row(str(number), f"Chat {number}", "idle", rank), -rank


def put(channel: Channel, number: int, rank: float) -> None:
    id, slot, data, place = row(number, rank)
    channel.put(id, slot, data, rank=place)


async def test_a_page_of_the_server_before_is_told_the_token_of_its_forms_once() -> None:
    clock = Clock("ab")
    channel = Channel("chats", clock)
    put(channel, 1, 1)
    fragments = Fragments(make_environment(templates_dir()), render_block)
    for epoch, tokens in (("cd", ["secret", None]), ("ab", [None, None])):
        frames = Frames(clock, fragments, {"chats": channel}, Cursor(epoch, 0), token="secret")
        told = []
        for number in (2, 3):
            put(channel, number, number)
            told.append(json.loads(await frames.next() or "{}").get("token"))
        assert told == tokens


async def test_what_moves_while_a_long_frame_is_made_ends_at_its_place() -> None:
    clock = Clock("ab")
    channel = Channel("chats", clock)
    for number in range(MANY):
        put(channel, number, number)
    fragments = Fragments(make_environment(templates_dir()), render_block)
    frames, page = Frames(clock, fragments, {"chats": channel}, Cursor("ab", 0)), Page()
    making = asyncio.create_task(frames.next())
    for turn in range(12):
        # The oldest lie last in the frame. One moves to the top, one goes, one is new.
        await asyncio.sleep(0)
        put(channel, turn, MANY + turn)
        channel.remove(f"r-{20 + turn}")
        put(channel, MANY + turn, -turn)
    assert not making.done()
    page.apply(await making)
    page.apply(await frames.next())
    assert page.order == [part.id for part in channel.slot("chats")]
    assert await frames.next() is None
