"""Operations of the API: one table makes the routes and the document that describes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import HarnessError
from web.ui.services import UiServices

B = TypeVar("B", bound=BaseModel)

_SHOWN_FAULTS = 5

_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}


@dataclass(frozen=True, slots=True)
class Call(Generic[B]):
    """One request to an operation: who asks, and what was sent."""

    services: UiServices
    request: Request
    identity: HarnessIdentity
    body: B

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter in the address."""

    name: str
    description: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Operation(Generic[B]):
    """One method of one path.

    `handle` returns what `answer` is the type of, or a whole response. `refusals` are the error
    codes it may answer beside those that every operation may.
    """

    method: str
    path: str
    summary: str
    handle: Callable[[Call[B]], Awaitable[Any]]
    body: type[B]
    answer: Any = None
    status: int = 200
    refusals: Sequence[str] = ()
    query: Sequence[Query] = ()
    media_type: str = "application/json"
    form: Mapping[str, Any] | None = None
    """The parts of a form with files, each with its JSON schema, where it is sent one. Then `body`
    is `Nothing`, and `handle` reads the request."""

    @property
    def described_path(self) -> str:
        """The path as documents write it: of what takes slashes too by its name alone."""
        return self.path.replace(":path}", "}")

    @property
    def sends_body(self) -> bool:
        return self.method in ("POST", "PATCH", "PUT") and self.form is None


def operation_routes(operations: Sequence[Operation[Any]], services: UiServices) -> list[Route]:
    """One route for each path, so that a wrong method is told all the right ones."""
    paths = dict.fromkeys(operation.path for operation in operations)
    return [
        _route(path, [each for each in operations if each.path == path], services) for path in paths
    ]


def _route(path: str, operations: Sequence[Operation[Any]], services: UiServices) -> Route:
    performers = {each.method: _performer(each, services) for each in operations}
    if "GET" in performers:
        performers["HEAD"] = performers["GET"]

    async def endpoint(request: Request) -> Response:
        return await performers[request.method](request)

    return Route(path, endpoint, methods=list(performers))


def _performer(
    operation: Operation[Any], services: UiServices
) -> Callable[[Request], Awaitable[Response]]:
    answer = TypeAdapter(operation.answer) if operation.answer is not None else None

    async def perform(request: Request) -> Response:
        identity = services.identify(request)
        raw = await request.body() if operation.sends_body else b""
        body = read_body(raw, request.headers.get("content-type", ""), operation.body)
        told = await operation.handle(Call(services, request, identity, body))
        if isinstance(told, Response):
            return told
        content = b"" if answer is None else answer.dump_json(told)
        return Response(
            content, operation.status, media_type=operation.media_type if content else None
        )

    return perform


def read_body(raw: bytes, content_type: str, shape: type[B]) -> B:
    """The JSON content of a request, checked. No content is an empty object.

    Raises HarnessError: `unsupported_media_type`, `malformed_json` or `invalid_request`.
    """
    if not raw:
        return _checked({}, shape)
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HarnessError(
            "The content has to be JSON.",
            hint="Send the header Content-Type: application/json.",
            code="unsupported_media_type",
        )
    try:
        given = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise HarnessError(
            f"The content is not JSON: {error}.",
            hint="Send one JSON object in UTF-8.",
            code="malformed_json",
        ) from None
    return _checked(given, shape)


def _checked(given: Any, shape: type[B]) -> B:
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        words = "; ".join(_in_words(fault) for fault in faults[:_SHOWN_FAULTS])
        known = ", ".join(shape.model_fields) or "none"
        raise HarnessError(
            f"The content does not fit: {words}.",
            hint=f"Nothing was changed. Fields that are known: {known}.",
            code="invalid_request",
        ) from None


def _in_words(fault: ErrorDetails) -> str:
    name = ".".join(str(step) for step in fault["loc"])[:80]
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "literal_error":
        words = f"must be {context['expected']}"
    elif kind == "value_error":
        words = str(context["error"])
    else:
        words = _WORDS.get(kind) or fault["msg"][:1].lower() + fault["msg"][1:]
    return f"`{name}` {words}" if name else f"it {words}"
