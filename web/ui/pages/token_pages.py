"""Where a person signs in with a token, and out: the browser keeps it out of the reach of scripts.

There is such a page only where `--identity token:FILE` says who asks.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from web.harness.values.errors import NotFound
from web.ui.access.identity import TokenIdentity, token_cookie
from web.ui.pages.forms import read_fields
from web.ui.pages.pages import theme_of
from web.ui.services import UiServices

SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"

_HERE = re.compile(r"/(?![/\\])[\x21-\x7e]{0,2000}")
"""A path of this server; browsers take `//` and `/\\` for another one."""

_FORGET = {"Clear-Site-Data": '"cache", "storage"'}
"""What the browser kept of pages and drafts goes with who signed in, if the browser knows how."""


def token_page_routes(services: UiServices) -> list[Route]:
    async def show(request: Request) -> Response:
        _tokens(services)
        return sign_in_page(services, request)

    async def sign_in(request: Request) -> Response:
        tokens = _tokens(services)
        fields = await read_fields(request)
        token, going_to = fields.get("token", "").strip(), fields.get("next", "")
        if tokens.of(token) is None:
            return sign_in_page(services, request, 401, going_to=going_to, refused=True)
        answer = RedirectResponse(_path(going_to), 303)
        answer.headers["Set-Cookie"] = token_cookie(token, secure=came_by_https(request))
        return answer

    async def sign_out(request: Request) -> Response:
        _tokens(services)
        answer = RedirectResponse(SIGN_IN, 303, headers=_FORGET)
        answer.headers["Set-Cookie"] = token_cookie("", secure=came_by_https(request))
        return answer

    return [
        Route(SIGN_IN, show),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Route(SIGN_OUT, sign_out, methods=["POST"]),
    ]


def sign_in_page(
    services: UiServices,
    request: Request,
    status: int = 200,
    *,
    going_to: str = "",
    refused: bool = False,
) -> Response:
    """The form for a token, which leads to `going_to` then; `refused` where one was not known."""
    template = services.templates.get_template("pages/token.html")
    html = template.render(
        theme=theme_of(request), title="Sign in", going_to=_path(going_to), refused=refused
    )
    return HTMLResponse(html, status, headers={"Cache-Control": "no-store"})


def came_by_https(request: Request) -> bool:
    """Whether the page came over https, also where a proxy has taken that away."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.startswith("https://")


def _path(going_to: str) -> str:
    """Where to go after signing in: nowhere but here."""
    return going_to if _HERE.fullmatch(going_to) else "/"


def _tokens(services: UiServices) -> TokenIdentity:
    if isinstance(services.identity, TokenIdentity):
        return services.identity
    raise NotFound("Nobody signs in with a token here.", hint="Check the address.")
