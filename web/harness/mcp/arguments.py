"""Arguments from a model, checked against the schema as the server wrote it."""

from __future__ import annotations

from typing import Any

from web.harness.mcp.checking import Fault, SchemaCheck
from web.harness.mcp.schemas import ModelSchema
from web.harness.mcp.wording import tidy
from web.harness.tools.words import MAX_ERROR_CHARS, clean, shorten
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject


class ArgumentCheck:
    """Turns what a model sent into what the server takes.

    `schema` is what the model was shown of `original`. A schema that cannot be used lets
    everything through: then the server decides.
    """

    def __init__(self, tool: str, original: object, schema: ModelSchema) -> None:
        self._tool = tool
        self._schema = schema
        self._check = SchemaCheck(original if _takes_objects(original) else None)

    def __call__(self, arguments: JsonObject) -> JsonObject:
        """Raises ToolError with one line for each fault, then the arguments there are."""
        renamed = self._schema.renamed
        arguments = {renamed.get(name, name): value for name, value in arguments.items()}
        faults = self._check.faults(arguments)
        if faults:
            raise ToolError(self._complaint(faults))
        return arguments

    def _complaint(self, faults: list[Fault]) -> str:
        shown = {name: new for new, name in self._schema.renamed.items()}
        lines = [f"- {_place(fault.path, shown)}: {fault.message}" for fault in faults]
        head = f"The arguments of '{self._tool}' do not fit:"
        text = "\n".join([head, *lines, _taken(self._schema.schema)])
        return clean(shorten(text, MAX_ERROR_CHARS))


def _takes_objects(schema: object) -> bool:
    """Arguments are always an object; a schema that says otherwise would refuse all of them."""
    if not isinstance(schema, dict):
        return False
    types = schema.get("type", "object")
    return types == "object" or (isinstance(types, list) and "object" in types)


def _place(path: tuple[str | int, ...], shown: dict[str, str]) -> str:
    text = ""
    for number, step in enumerate(path):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            step = shown.get(step, step) if number == 0 else step
            text += f".{step}" if text else step
    return shorten(text, 120) or "the arguments"


def _taken(schema: JsonObject) -> str:
    """The arguments of the tool in one line: names, types, which must be there."""
    properties: JsonObject = schema["properties"]
    if not properties:
        return "Its description says what it takes."
    required = schema.get("required", ())
    parts = [
        f"{name} ({_type(inner)}{', required' if name in required else ''})"
        for name, inner in properties.items()
    ]
    return f"It takes: {', '.join(parts)}."


def _type(schema: Any) -> str:
    if "enum" in schema:
        values = schema["enum"]
        listed = ", ".join(tidy(str(value), 40, one_line=True) for value in values[:20])
        return f"one of {listed}" + (", …" if len(values) > 20 else "")
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(inner) for inner in schema["anyOf"][:5]))
    types = schema.get("type", "any value")
    return " or ".join(types) if isinstance(types, list) else str(types)
