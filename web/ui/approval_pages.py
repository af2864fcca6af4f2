"""All of what a call would do, on a page of its own: what the card in the chat has no room for.

It needs no script. What is very long comes in pages, each of a bounded size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.asked import Asked, find_asked
from web.harness.tools.previews import Block, count_lines, preview_blocks, rows_of
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound
from web.harness.values.messages import JsonObject
from web.ui.cards import argument_text
from web.ui.pages import theme_of
from web.ui.services import UiServices
from web.ui.unseen import hides

PAGE_LINES = 2_000
PAGE_CHARS = 100_000


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
    """A page of all lines of a question, preview first; one beyond the last is the last."""
    question = asked.question
    unseen = hides([question.arguments, (question.preview or {}).values()])
    pages = sum(1 for _ in _pages(_sections(asked)))
    number = max(1, min(number, pages))
    sections = next(page for at, page in enumerate(_pages(_sections(asked)), 1) if at == number)
    return WholePage(sections, number, pages, unseen)


def _sections(asked: Asked) -> Iterator[tuple[Section, Iterable[Block]]]:
    """Everything that a person decides on, or has."""
    preview = asked.question.preview
    if preview:
        is_diff = preview.get("kind") == "diff"
        title = "What changes" if is_diff else "What it would do"
        yield Section(title, False), preview_blocks(preview)
        if preview.get("files"):
            yield Section("What it can load", False), ()
            for name, text in preview["files"]:
                yield Section(name, True), (Block("text", text),)
    if asked.call.edited:
        yield from _arguments(asked.call.arguments or {}, "as you changed them")
        yield from _arguments(asked.question.arguments, "as the model gave them")
    else:
        yield from _arguments(asked.question.arguments, "")


def _arguments(arguments: JsonObject, which: str) -> Iterator[tuple[Section, Iterable[Block]]]:
    title = f"Arguments, {which}" if which else "Arguments"
    yield Section(title, False), (() if arguments else (Block("gap", "None"),))
    for name, value in arguments.items():
        yield Section(name, True), (Block("text", argument_text(value)),)


def _pages(sections: Iterable[tuple[Section, Iterable[Block]]]) -> Iterator[list[Section]]:
    """Pages of at most so many lines and characters. There is one at least."""
    page: list[Section] = []
    lines, chars = PAGE_LINES, PAGE_CHARS
    for section, blocks in sections:
        page.append(section)
        for kind, text in blocks:
            start = 0
            while start < len(text) or not start:
                if lines <= 0 or chars <= 0:
                    yield page
                    section = Section(section.title, section.named, goes_on=True)
                    page, lines, chars = [section], PAGE_LINES, PAGE_CHARS
                piece = _piece(text, start, lines, chars)
                if start and text[start - 1] != "\n":
                    section.blocks.append(Block("gap", "The line goes on:"))
                section.blocks.append(Block(kind, piece))
                lines, chars = lines - count_lines(piece), chars - len(piece)
                start += len(piece) or 1
    yield page


def _piece(text: str, start: int, lines: int, chars: int) -> str:
    """What fits from there on: whole lines, or a piece of one that is longer than a page."""
    piece = text[start : start + chars]
    if piece.count("\n") > lines:
        rest = piece.split("\n", lines)[-1]
        return piece[: len(piece) - len(rest)]
    if start + len(piece) < len(text):
        return piece[: piece.rfind("\n") + 1] or piece
    return piece
