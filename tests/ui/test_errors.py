"""One table says the status of every error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import web.harness.values.errors
from tests.support.environment import CHECKOUT
from web.harness.values.errors import HarnessError
from web.ui.errors import STATUS, ErrorAnswers

pytestmark = pytest.mark.anyio

ANSWERING = ("web/ui", "web/chats", "web/harness/agent", "web/harness/sessions")
"""Where errors are raised that a request can be answered with."""


def subclasses(kind: type[HarnessError]) -> Iterator[type[HarnessError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


def codes_in_source() -> Iterator[tuple[str, str]]:
    for folder in ANSWERING:
        for file in (CHECKOUT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.keyword(arg="code", value=ast.Constant(value=code)):
                        yield str(code), str(file)


def test_every_error_code_has_a_status() -> None:
    own = vars(web.harness.values.errors).values()
    kinds = [kind for kind in subclasses(HarnessError) if kind in own]
    assert len(kinds) > 10
    assert {kind.code for kind in kinds} <= set(STATUS)
    found = dict(codes_in_source())
    assert len(found) > 10
    missing = {code: file for code, file in found.items() if code not in STATUS}
    assert missing == {}


async def test_an_error_page_that_fails_still_leaves_an_answer() -> None:
    def html(request: Request, status: int, error: HarnessError) -> Response:
        raise RuntimeError("the template is broken")

    async def refuse(request: Request) -> Response:
        raise HarnessError("Full.", hint="Wait.", code="too_many_streams")

    app = Starlette(routes=[Route("/", refuse)], exception_handlers=ErrorAnswers(html).handlers)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/", headers={"Accept": "text/html"})
    assert answer.status_code == 503
    assert answer.json() == {"code": "too_many_streams", "message": "Full.", "hint": "Wait."}
    assert answer.headers["Retry-After"] == "5"
