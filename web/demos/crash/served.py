"""The server of the demo: the usual application with the tools of the story; it can be killed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from web.app import create_app
from web.demos.crash.asked import Asked
from web.demos.crash.story import StoryProvider
from web.demos.crash.tools import QUICK, Times, crash_tools
from web.settings import Settings
from web.ui.added import Added
from web.ui.pages.forms import by_script, read_fields
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

KILL = "/demo/kill"

_PAGE = re.compile(r"/(?:chats/[\w-]+)?")


class _GivenSettings(Settings):
    """Those that are given and no others: the environment may hold those of a server of one's own,
    with identity, models and keys."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def settings_for(asked: Asked) -> Settings:
    return _GivenSettings(
        store=asked.store,
        port=asked.port,
        data_dir=Path(asked.folder),
        open_browser=False,
        log_level="error",
    )


def make_app(asked: Asked, settings: Settings) -> Starlette:
    story = StoryProvider(fast=asked.fast)

    def routes(services: UiServices) -> Sequence[Route]:
        services.templates.globals["page_token"] = asked.token
        services.templates.globals["kill_path"] = KILL
        return [kill_route(services)]

    added = Added(crash_tools(asked.ledger, QUICK if asked.fast else Times()), routes)
    return create_app(settings, providers=lambda model: story, added=added)


def kill_route(services: UiServices) -> Route:
    async def kill(request: Request) -> Response:
        """Ends this process as the system does when there is no memory left."""
        services.identify(request)
        fields = await read_fields(request)
        services.check_token(fields)
        die = BackgroundTask(os.kill, os.getpid(), signal.SIGKILL)
        if by_script(request):
            return Response(status_code=204, background=die)
        back = fields.get("back", "")
        html = services.templates.get_template("pages/killed.html").render(
            theme=theme_of(request), title="Killed", back=back if _PAGE.fullmatch(back) else "/"
        )
        return HTMLResponse(html, background=die)

    return Route(KILL, kill, methods=["POST"])
