"""The steps of a run, page by page: of a chat's own run, or of one that was opened from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.parts.kinds import Foot
from web.chats.runs.run_control import RunControl
from web.chats.steps.run_files import RunFile, write_run_file
from web.chats.steps.shown_steps import shown_steps
from web.chats.steps.step_kinds import ShownStep
from web.harness.sessions.journal import NumberedStep
from web.harness.tools.threads import run_in_thread
from web.harness.values.errors import NotFound
from web.ui.files.file_bytes import disposition
from web.ui.pages.pages import theme_of
from web.ui.runs.run_forms import run_of
from web.ui.services import UiServices

PAGE_STEPS = 100
"""Of one page."""

READ_AT_ONCE = 500

SHOWN_CHARS = 4_000
"""Of each text of a step; a page of that step alone has all of it."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A step, how many seconds after the run's first it was, and after the one before it."""

    step: ShownStep
    since_begin: float
    since_last: float


@dataclass(frozen=True, slots=True)
class StepsPage:
    """Some steps that follow one another. `before` and `after` are where other pages begin, 0 for
    none; with `alone` it is one step, whole."""

    steps: Sequence[Timed]
    before: int = 0
    after: int = 0
    alone: bool = False


def run_page_routes(services: UiServices) -> list[Route]:
    async def steps(request: Request) -> Response:
        chat, run_id = _named(services, request)
        page = await read_page(services.runs, chat, run_id, *_wanted(request))
        part = chat.channel.get(f"e-{run_id}")
        foot = part.data if part is not None and isinstance(part.data, Foot) else None
        address = f"/chats/{chat.id}/runs/{run_id}"
        return await _shown(services, request, page, chat.title, address, chat, foot)

    async def export(request: Request) -> Response:
        chat, run_id = _named(services, request)
        return await exported(services, chat, run_id)

    async def opened(request: Request) -> Response:
        identity = services.identify(request)
        run = services.opened_runs.get(identity, request.path_params["opened_id"])
        page = page_of(run, *_wanted(request))
        address = f"/opened-runs/{request.path_params['opened_id']}"
        return await _shown(services, request, page, run.title, address, None, None)

    return [
        Route("/chats/{chat_id}/runs/{run_id}/steps", steps),
        Route("/chats/{chat_id}/runs/{run_id}/export", export),
        Route("/opened-runs/{opened_id}", opened),
    ]


async def read_page(
    control: RunControl, chat: Chat, run_id: str, start: int, alone: bool
) -> StepsPage:
    """The page that begins with a step. Raises NotFound where there is none."""
    size = 1 if alone else PAGE_STEPS
    # One more on each side: for the time since the one before, and to know whether more follow.
    read = await control.steps(chat, run_id, max(0, start - 2), size + 2)
    first = read if start <= 2 else await control.steps(chat, run_id, 0, 1)
    if not read or not first:
        raise no_steps(start)
    steps = list(shown_steps(read, {}))
    return _page(steps, first[0].at, start, size, alone)


def page_of(run: RunFile, start: int, alone: bool) -> StepsPage:
    """The same of a run that was opened."""
    size = 1 if alone else PAGE_STEPS
    begin = max(0, start - 2)
    read = [step for step in run.steps if begin < step.number <= begin + size + 2]
    if not read:
        raise no_steps(start)
    return _page(read, run.steps[0].at, start, size, alone)


def no_steps(start: int) -> NotFound:
    if start > 1:
        return NotFound("There is no such step.", hint="The run has fewer.")
    return NotFound(
        "No steps are kept of this run.",
        hint="They are written down where the server was started with --backend, and go with the "
        "chat. The answer itself is in the chat.",
    )


async def exported(services: UiServices, chat: Chat, run_id: str) -> Response:
    """The file of a run. Raises NotFound, LimitExceeded."""
    steps: list[NumberedStep] = []
    while page := await services.runs.steps(
        chat, run_id, steps[-1].number if steps else 0, READ_AT_ONCE
    ):
        steps += page
    if not steps:
        raise no_steps(1)
    title, now = chat.title, services.now()

    def written() -> bytes:
        return write_run_file(RunFile(run_id, title, now, tuple(shown_steps(steps, {}))))

    data = await run_in_thread(written)
    headers = {
        "content-disposition": disposition(f"run-{run_id}.json"),
        "cache-control": "private, no-store",
    }
    return Response(data, headers=headers, media_type="application/json")


def _page(read: Sequence[ShownStep], begun: float, start: int, size: int, alone: bool) -> StepsPage:
    shown = [each for each in read if start <= each.number < start + size]
    if not shown:
        raise no_steps(start)
    times = {each.number: each.at for each in read}
    timed = [
        Timed(
            each, max(0.0, each.at - begun), max(0.0, each.at - times.get(each.number - 1, each.at))
        )
        for each in shown
    ]
    last = shown[-1].number
    return StepsPage(
        timed,
        before=max(1, start - size) if start > 1 else 0,
        after=last + 1 if read[-1].number > last else 0,
        alone=alone,
    )


def _named(services: UiServices, request: Request) -> tuple[Chat, str]:
    identity = services.identify(request)
    chat = services.chats.get(identity, request.path_params["chat_id"])
    return chat, run_of(services, request, chat)


def _wanted(request: Request) -> tuple[int, bool]:
    """Where the page begins, and whether it is one step alone."""
    query = request.query_params
    alone = query.get("step", "")
    given = alone or query.get("from", "")
    number = int(given) if given.isdecimal() and len(given) < 10 else 1
    return max(1, number), bool(alone)


async def _shown(
    services: UiServices,
    request: Request,
    page: StepsPage,
    title: str,
    address: str,
    chat: Chat | None,
    foot: Foot | None,
) -> Response:
    template = services.templates.get_template("pages/steps.html")

    def html() -> bytes:
        return template.render(
            theme=theme_of(request),
            title="Steps",
            chat={"id": chat.id, "title": chat.title} if chat is not None else None,
            of=title,
            page=page,
            foot=foot,
            address=address,
            most=None if page.alone else SHOWN_CHARS,
            request_id=services.new_id(),
        ).encode(errors="replace")

    return HTMLResponse(await run_in_thread(html))
