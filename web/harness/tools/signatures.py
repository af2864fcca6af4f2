"""A function's signature as a JSON Schema, and a model's arguments as the function's own.

pydantic and docstring-parser are imported when the first signature is read, since they cost more
than the rest of the library together.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from web.harness.tools.complaints import complaint
from web.harness.tools.schemas import without_titles
from web.harness.tools.tool import ToolContext
from web.harness.values.errors import ConfigurationError, ToolError
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model may send to one function, and how that becomes a call.

    `schema` is a JSON Schema of type object with no title in it; a parameter annotated
    `ToolContext` is not part of it. `description` is the docstring's text without its sections.
    """

    tool: str
    description: str
    schema: JsonObject
    _model: type[BaseModel]
    _parameters: Mapping[str, inspect.Parameter]
    _context_parameters: frozenset[str]

    def validate(self, arguments: JsonObject) -> JsonObject:
        """The arguments as JSON of the right types; validating them again changes nothing.

        Slips that models make are forgiven: "3" for 3, 3 for "3", a list or object sent as JSON
        text, null for an argument that may be left out. Raises ToolError that names each argument
        that does not fit, what was expected and what was given.
        """
        repaired, parsed = self._parse(arguments)
        try:
            normal = parsed.model_dump(mode="json", by_alias=True, exclude_unset=True)
            # A type that does not survive its own JSON (a secret, say) stays as it was sent.
            return normal if self._model.model_validate(normal) == parsed else repaired
        except (ValueError, TypeError, RecursionError):
            return repaired

    def bind(self, arguments: JsonObject, context: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of the call. Raises ToolError as `validate` does."""
        _, parsed = self._parse(arguments)
        fields = self._model.model_fields
        given: dict[str, Any] = {
            str(fields[key].alias): getattr(parsed, key) for key in parsed.model_fields_set
        }
        given.update(dict.fromkeys(self._context_parameters, context))
        leading = [
            name
            for name, parameter in self._parameters.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        positional = [given.pop(name, self._parameters[name].default) for name in leading]
        return positional, given

    def _parse(self, arguments: JsonObject) -> tuple[JsonObject, BaseModel]:
        from pydantic import ValidationError

        try:
            return arguments, self._model.model_validate(arguments)
        except ValidationError as error:
            first = error
        repaired = self._repair(arguments, first)
        if repaired is not None:
            try:
                return repaired, self._model.model_validate(repaired)
            except ValidationError:
                # The complaint is about what was sent, not about our guess at it.
                pass
        raise ToolError(complaint(self.tool, arguments, first, self.schema))

    def _repair(self, arguments: JsonObject, error: ValidationError) -> JsonObject | None:
        """The arguments with what they plausibly meant, or None where there is no guess."""
        faulty = {str(line["loc"][0]) for line in error.errors(include_url=False) if line["loc"]}
        repaired = dict(arguments)
        for name in faulty & arguments.keys() & self._parameters.keys():
            value = arguments[name]
            optional = self._parameters[name].default is not inspect.Parameter.empty
            if value is None and optional:
                del repaired[name]
            elif isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
                try:
                    repaired[name] = json.loads(value)
                except (ValueError, RecursionError):
                    continue
        return repaired if repaired != arguments else None


def read_signature(function: Callable[..., Any], tool: str) -> Signature:
    """The signature of a function, method, partial or callable object for the tool named `tool`.

    Raises ConfigurationError when a model could not call it: `*args` or `**kwargs`, an annotation
    that cannot be resolved, a type that has no JSON form.
    """
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError
    from pydantic.json_schema import GenerateJsonSchema

    class Schema(GenerateJsonSchema):
        def emit_warning(self, kind: Any, detail: str) -> None:
            """A default without a JSON form is left out of the schema; nobody has to know."""

    parameters = _parameters(function, tool)
    hints = _hints(function, parameters, tool)
    text, described = _documentation(function)
    context_names = frozenset(name for name, hint in hints.items() if _is_context(hint))
    # Fields are numbered, and named by alias, so that any legal parameter name will do.
    fields: dict[str, Any] = {
        f"p{index}": _field(name, parameter, hints[name], described.get(name), tool)
        for index, (name, parameter) in enumerate(parameters.items())
        if name not in context_names
    }
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
    try:
        model = create_model("Arguments", __config__=config, **fields)
        schema = model.model_json_schema(by_alias=True, schema_generator=Schema)
    except (PydanticUserError, NameError, TypeError) as error:
        raise ConfigurationError(
            f"The tool '{tool}' has a parameter whose type has no JSON form: {error}",
            hint="Annotate it with plain types, dataclasses, TypedDict or pydantic models.",
        ) from error
    return Signature(tool, text, without_titles(schema), model, parameters, context_names)


def shared_signature(function: Callable[..., Any], tool: str) -> Signature:
    """As `read_signature`, but read once for all closures that one `def` makes.

    Reading takes milliseconds and tens of kilobytes, too much for each chat. Fit only where the
    annotations and defaults of those closures are always the same.
    """
    key = (function.__code__, tool)
    signature = _shared.get(key)
    if signature is None:
        signature = _shared[key] = read_signature(function, tool)
    return signature


_shared: dict[tuple[types.CodeType, str], Signature] = {}


def _parameters(function: Callable[..., Any], tool: str) -> Mapping[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The tool '{tool}' has no readable signature: {error}") from error
    for parameter in parameters.values():
        if parameter.kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise ConfigurationError(
                f"The tool '{tool}' takes '{parameter}', which a model cannot be told about.",
                hint="Name every parameter, or take one list or dict.",
            )
    return parameters


def _hints(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], tool: str
) -> dict[str, Any]:
    """Resolved annotations of the parameters; one without an annotation may be anything."""
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    if not hasattr(target, "__annotations__") and not hasattr(target, "__func__"):
        target = type(target).__call__
    target = inspect.unwrap(getattr(target, "__func__", target))
    annotations = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if parameter.annotation is not inspect.Parameter.empty
    }
    # Only the parameters count: a return type may name what is imported for type checkers alone.
    holder = types.SimpleNamespace(__annotations__=annotations)
    try:
        resolved = typing.get_type_hints(
            holder, getattr(target, "__globals__", {}), include_extras=True
        )
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ConfigurationError(
            f"An annotation of the tool '{tool}' cannot be resolved: {error}",
            hint="Types of tool parameters must be names of the function's module.",
        ) from error
    return {name: resolved.get(name, Any) for name in parameters}


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The docstring's text without its sections, and what it says of each parameter."""
    target = function.func if isinstance(function, functools.partial) else function
    raw = inspect.getdoc(target) if hasattr(target, "__name__") else type(target).__doc__
    if not raw:
        return "", {}
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(raw)
    except ParseError:
        return raw.strip(), {}
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    described = {
        entry.arg_name: " ".join(entry.description.split())
        for entry in parsed.params
        if entry.description
    }
    return "\n\n".join(parts), described


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or ToolContext in typing.get_args(hint)


def _field(
    name: str, parameter: inspect.Parameter, hint: Any, described: str | None, tool: str
) -> tuple[Any, FieldInfo]:
    """One field of the arguments. A description in `Annotated` beats the docstring's."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        raise ConfigurationError(
            f"The parameter '{name}' of the tool '{tool}' has a Field as its default.",
            hint="Write Annotated[type, Field(...)] and a plain default.",
        )
    extras = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    for extra in extras:
        if isinstance(extra, str):
            described = extra
        elif isinstance(extra, FieldInfo) and extra.description:
            described = extra.description
    field: FieldInfo = Field(default, alias=name, description=described)
    return hint, field
