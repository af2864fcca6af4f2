"""All of what a call would do, on a page of its own: what the card in the chat has no room for.

It needs no script. What is very long comes in pages, each of a bounded size.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.transcript.asked import Asked, find_asked
from web.harness.tools.previews import Block, count_lines, preview_blocks, rows_of
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound
from web.harness.values.messages import JsonObject
from web.ui.pages.pages import theme_of
from web.ui.rendering.cards import argument_text
from web.ui.rendering.unseen import hides
from web.ui.services import UiServices

PAGE_LINES = 2_000
PAGE_CHARS = 100_000

PLANS_KEPT = 4
"""Questions whose pages are remembered, of everybody. Each may hold some megabytes of text."""

_STEP_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading, or beside a name in it. `goes_on` says that some of it is on
    the page before."""

    title: str
    named: bool
    goes_on: bool = False
    blocks: list[Block] = field(default_factory=list)

    @property
    def lines(self) -> Iterator[Block]:
        return (Block(row.kind, row.text) for block in self.blocks for row in rows_of(block))


class WholePage(NamedTuple):
    """One of `pages` pages of all that is to be seen. `unseen`: something is spelled out there."""

    sections: list[Section]
    number: int
    pages: int
    unseen: bool


def approval_page_routes(services: UiServices) -> list[Route]:
    async def shown(request: Request) -> Response:
        identity, key = services.identify(request), request.path_params["key"]
        chat = services.chats.get(identity, request.path_params["chat_id"])
        chat.channel.settled()
        asked = find_asked(chat.channel, chat.asked, key)
        if asked is None:
            raise unknown_question()
        template = services.templates.get_template("pages/approval.html")
        wanted = request.query_params.get("page", "")
        number = int(wanted) if wanted.isdecimal() and len(wanted) < 10 else 1

        def html() -> bytes:
            return template.render(
                theme=theme_of(request),
                title=f"All of {asked.question.name}",
                chat={"id": chat.id, "title": chat.title},
                asked=asked,
                whole=whole_page(asked, number),
            ).encode(errors="replace")

        return HTMLResponse(await run_in_thread(html))

    return [Route("/chats/{chat_id}/approvals/{key}", shown)]


def unknown_question() -> NotFound:
    return NotFound(
        "There is no such question here.",
        hint="A chat keeps the last 1,000 it was asked. Its calls are still in the chat.",
    )


def whole_page(asked: Asked, number: int) -> WholePage:
    """A page of all lines of a question, preview first; one beyond the last is the last.

    The first page of a large question takes longer than those after it. For use in a thread.
    """
    plan = _PLANS.of(asked)
    number = max(1, min(number, len(plan.starts)))
    sections, _ = _page_at(plan.sections, plan.starts[number - 1])
    return WholePage(sections, number, len(plan.starts), plan.unseen)


class _Matter(NamedTuple):
    """All that stands under one heading."""

    title: str
    named: bool
    blocks: Sequence[Block]


class _Start(NamedTuple):
    """Where a page begins: the section, the block of it, and the character of that."""

    section: int = 0
    block: int = 0
    character: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the pages of a question begin, so that none is looked for again."""

    sections: Sequence[_Matter]
    starts: Sequence[_Start]
    unseen: bool


class _Plans:
    """The plans of the questions that were looked at last. A lock guards what threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[int, ...], tuple[_Plan, object]] = OrderedDict()

    def of(self, asked: Asked) -> _Plan:
        # They are kept beside the plan, so that nothing else can be known by these numbers.
        what = (asked.question.preview, asked.question.arguments, asked.call.arguments)
        key = (*map(id, what), asked.call.edited)
        with self._lock:
            known = self._made.pop(key, None)
        plan = known[0] if known is not None else _planned(asked)
        with self._lock:
            self._made[key] = (plan, what)
            while len(self._made) > PLANS_KEPT:
                self._made.popitem(last=False)
        return plan


_PLANS = _Plans()


def _planned(asked: Asked) -> _Plan:
    sections = list(_sections(asked))
    question = asked.question
    unseen = hides([question.arguments, (question.preview or {}).values()])
    starts: list[_Start] = []
    start: _Start | None = _Start()
    while start is not None:
        starts.append(start)
        _, start = _page_at(sections, start)
    return _Plan(sections, starts, unseen)


def _sections(asked: Asked) -> Iterator[_Matter]:
    """Everything that a person decides on, or has."""
    preview = asked.question.preview
    if preview:
        is_diff = preview.get("kind") == "diff"
        title = "What changes" if is_diff else "What it would do"
        yield _Matter(title, False, tuple(preview_blocks(preview)))
        if preview.get("files"):
            yield _Matter("What it can load", False, ())
            for name, text in preview["files"]:
                yield _Matter(name, True, (Block("text", text),))
    if asked.call.edited:
        yield from _arguments(asked.call.arguments or {}, "as you changed them")
        yield from _arguments(asked.question.arguments, "as the model gave them")
    else:
        yield from _arguments(asked.question.arguments, "")


def _arguments(arguments: JsonObject, which: str) -> Iterator[_Matter]:
    title = f"Arguments, {which}" if which else "Arguments"
    yield _Matter(title, False, () if arguments else (Block("gap", "None"),))
    for name, value in arguments.items():
        yield _Matter(name, True, (Block("text", argument_text(value)),))


def _page_at(sections: Sequence[_Matter], begin: _Start) -> tuple[list[Section], _Start | None]:
    """A page of at most so many lines and characters, and where the next one begins."""
    page: list[Section] = []
    lines, chars = PAGE_LINES, PAGE_CHARS
    for number, (title, named, blocks) in enumerate(sections[begin.section :], begin.section):
        is_first = number == begin.section
        section = Section(title, named, goes_on=is_first and begin != _Start())
        page.append(section)
        first_block = begin.block if is_first else 0
        for at, (kind, text) in enumerate(blocks[first_block:], first_block):
            start = begin.character if is_first and at == first_block else 0
            while start < len(text) or not start:
                if lines <= 0 or chars <= 0:
                    return page, _Start(number, at, start)
                piece = _piece(text, start, lines, chars)
                if start and text[start - 1] != "\n":
                    section.blocks.append(Block("gap", "The line goes on:"))
                section.blocks.append(Block(kind, piece))
                lines, chars = lines - count_lines(piece), chars - len(piece)
                start += len(piece) or 1
    return page, None


def _piece(text: str, start: int, lines: int, chars: int) -> str:
    """What fits from there on: whole lines, or a piece of one that is longer than a page."""
    end = min(len(text), start + chars)
    at, left = start, lines
    while at < end:
        step = min(end, at + _STEP_CHARS)
        breaks = text.count("\n", at, step)
        if breaks > left:
            for _ in range(left):
                at = text.index("\n", at) + 1
            return text[start : text.rfind("\n", start, at) + 1]
        at, left = step, left - breaks
    if end < len(text):
        end = text.rfind("\n", start, end) + 1 or end
    return text[start:end]
