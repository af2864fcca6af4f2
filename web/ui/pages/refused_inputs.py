"""A form that a tool asked for and that is not right yet, back with what was typed and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse

from web.chats.parts.kinds import Input
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices


def field_names(asked: Input) -> dict[str, str]:
    """The names under which a page sends the fields of a form. Their own are a stranger's."""
    return {field.name: f"f{number}" for number, field in enumerate(asked.fields)}


def refused_input(
    services: UiServices,
    request: Request,
    asked: Input,
    typed: Mapping[str, Sequence[str]],
    faults: Mapping[str, str],
) -> HTMLResponse:
    """With script only the faults, each for its place; without it the whole form on a page."""
    by_script = request.headers.get("hx-request") == "true"
    template = services.templates.get_template(
        "parts/input_faults.html" if by_script else "pages/input.html"
    )
    html = template.render(
        theme=theme_of(request),
        title="Not sent yet",
        action=request.url.path,
        back=f"/chats/{request.path_params['chat_id']}",
        asked=asked,
        typed=typed,
        faults=faults,
    )
    return HTMLResponse(html.encode(errors="replace"), 422)
