"""What a demo puts beside the application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from web.harness.tools.tool import Tool
from web.ui.services import UiServices


@dataclass(frozen=True, slots=True)
class Added:
    """Tools for every chat, and routes."""

    tools: Sequence[Tool] = ()
    routes: Callable[[UiServices], Sequence[BaseRoute]] = lambda services: ()
