"""How errors are answered: one table of statuses, one JSON shape for programs, HTML for people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from web.harness.values.errors import HarnessError
from web.ui.access.identity import TokenIdentity
from web.ui.pages.pages import error_line, error_page
from web.ui.pages.token_pages import sign_in_page
from web.ui.pages.typed_text import typed
from web.ui.services import UiServices

log = logging.getLogger(__name__)

STATUS: Mapping[str, int] = {
    # The request itself
    "bad_request": 400,
    "bad_cursor": 400,
    "malformed_json": 400,
    "unknown_identity": 401,
    "cross_site": 403,
    "stale_page": 403,
    "skill_read_only": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "snapshot_too_large": 413,
    "too_large": 413,
    "context_too_long": 413,
    "too_long": 413,
    "unsupported_media_type": 415,
    "bad_host": 421,
    "configuration_differs": 422,
    "configuration_error": 422,
    "conversation_broken": 422,
    "empty": 422,
    "extensions_differ": 422,
    "from_the_future": 422,
    "invalid_arguments": 422,
    "invalid_id": 422,
    "invalid_messages": 422,
    "invalid_request": 422,
    "memory_refused": 422,
    "not_serialisable": 422,
    "session_id_refused": 422,
    "run_file_refused": 422,
    "skill_refused": 422,
    "snapshot_refused": 422,
    "tool_error": 422,
    # What is going on at the moment
    "agent_busy": 409,
    "agent_closed": 409,
    "decision_refused": 409,
    "lease_lost": 409,
    "memory_changed": 409,
    "not_written_down": 409,
    "request_id_reused": 409,
    "run_ended": 409,
    "run_interrupted": 409,
    "run_paused": 409,
    "run_unfinished": 409,
    "runtime_differs": 409,
    "session_conflict": 409,
    "session_exists": 409,
    "skill_changed": 409,
    "skill_exists": 409,
    "limit_exceeded": 429,
    # The server
    "harness_error": 500,
    "internal_error": 500,
    "memory_disk": 500,
    "provider_error": 502,
    "provider_pictures_refused": 502,
    "provider_timeout": 504,
    "files_busy": 503,
    "memory_busy": 503,
    "skills_busy": 503,
    "store_busy": 503,
    "store_closed": 503,
    "store_corrupt": 500,
    "store_failed": 500,
    "store_full": 507,
    "store_locked": 503,
    "store_read_only": 503,
    "store_refused": 500,
    "store_unavailable": 503,
    "temporal_no_namespace": 503,
    "temporal_unreachable": 503,
    "too_many_streams": 503,
}
"""The HTTP status of every error code that can be an answer."""

_RETRY_AFTER_SECONDS = dict.fromkeys(
    ("files_busy", "memory_busy", "skills_busy", "too_many_streams"), "5"
)

_HTTP_ERRORS: Mapping[int, tuple[str, str, str]] = {
    400: ("bad_request", "The request cannot be read.", "Check how it is written."),
    404: ("not_found", "There is nothing at this address.", "Check the address."),
    405: (
        "method_not_allowed",
        "This address cannot be used with this method.",
        "The header Allow names those that it takes.",
    ),
    413: ("too_large", "The request is too large.", "Send less."),
    415: ("unsupported_media_type", "This kind of content is not taken.", ""),
}
"""Code, message and hint for what Starlette refuses by itself."""

HtmlError = Callable[[Request, int, HarnessError], Response]
"""Shows an error to a person; given the request, the status and the error."""


def status_of(error: HarnessError) -> int:
    """The status of an error. A code that the table lacks is a fault of this server: 500."""
    return STATUS.get(error.code, 500)


def html_errors(services: UiServices) -> HtmlError:
    """Errors as the page shows them: a line for a form sent by script, a page otherwise."""

    def show(request: Request, status: int, error: HarnessError) -> Response:
        if request.headers.get("hx-request") == "true":
            return error_line(services, status, error)
        if error.code == "unknown_identity" and isinstance(services.identity, TokenIdentity):
            query = f"?{request.url.query}" if request.url.query else ""
            asked = quote(request.url.path) + query
            going_to = asked if request.method == "GET" else "/"
            return sign_in_page(services, request, status, going_to=going_to)
        return error_page(services, request, status, error, typed(request))

    return show


class ErrorAnswers:
    """Answers any exception, as JSON to programs and through `html` to people."""

    def __init__(self, html: HtmlError) -> None:
        self._html = html

    def answer(self, request: Request, exception: Exception) -> Response:
        """The response to an exception. An unexpected one is logged; nothing of it is told."""
        headers: dict[str, str] = {}
        if isinstance(exception, HarnessError):
            error = exception
            if error.code not in STATUS:
                log.error("No status is known for the error code %s", error.code)
        elif isinstance(exception, HTTPException):
            error = _of_http(exception)
            headers.update(exception.headers or {})
        else:
            log.error(
                "%s %s failed unexpectedly",
                request.method,
                request.scope["path"],
                exc_info=exception,
            )
            error = HarnessError(
                "Something went wrong inside the server.",
                hint="The server's log says more. Try again.",
                code="internal_error",
            )
        if error.code in _RETRY_AFTER_SECONDS:
            headers["Retry-After"] = _RETRY_AFTER_SECONDS[error.code]
        if error.code == "unknown_identity":
            headers["WWW-Authenticate"] = "Bearer"
        response = self._shown(request, status_of(error), error)
        response.headers.update(headers)
        return response

    @property
    def handlers(self) -> Mapping[type[Exception], ExceptionHandler]:
        """For Starlette's `exception_handlers`: what is raised on purpose by a route."""

        async def handle(request: Request, exception: Exception) -> Response:
            return self.answer(request, exception)

        return {HarnessError: handle, HTTPException: handle}

    def _shown(self, request: Request, status: int, error: HarnessError) -> Response:
        if is_for_people(request):
            try:
                return self._html(request, status, error)
            except Exception:
                log.exception("An error page could not be made")
        return JSONResponse(error.as_dict(), status)


def is_for_people(request: Request) -> bool:
    """Whether HTML is wanted: by a page's script, or by a browser that opens a page."""
    if request.scope["path"].startswith(("/api/", "/stream", "/changes")):
        return False
    headers = request.headers
    return headers.get("hx-request") == "true" or "text/html" in headers.get("accept", "")


class Guarded:
    """The middleware that answers what no route has answered: refusals and unexpected errors."""

    def __init__(self, app: ASGIApp, answers: ErrorAnswers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            # Whoever asked is gone: there is nobody to answer.
            return
        except Exception as exception:
            if started:
                raise
            response = self._answers.answer(Request(scope), exception)
            await response(scope, receive, send)


def _of_http(exception: HTTPException) -> HarnessError:
    code, message, hint = _HTTP_ERRORS.get(
        exception.status_code, ("bad_request", "The request cannot be answered.", "")
    )
    if exception.status_code == 400 and exception.detail != "Bad Request":
        message = f"The request cannot be read: {exception.detail}"
    return HarnessError(message, hint=hint, code=code)
