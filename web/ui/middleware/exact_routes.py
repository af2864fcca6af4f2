"""Routes that match whole addresses: `$` also matches before a line break at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.routing import BaseRoute, Mount, Route


def make_exact(routes: Iterable[BaseRoute]) -> None:
    """Has each route, and those below mounts, refuse an address with a line break after it."""
    for route in routes:
        if isinstance(route, Route | Mount):
            pattern = route.path_regex
            if pattern.pattern.endswith("$"):
                route.path_regex = re.compile(pattern.pattern[:-1] + r"\Z", pattern.flags)
        if isinstance(route, Mount):
            make_exact(route.routes)
