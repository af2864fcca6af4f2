"""What a server says, without the secrets that it was given: it may repeat them anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from web.harness.mcp.secret_forms import without
from web.harness.mcp.spec import ServerSpec

MAX_CHARS = 1_000_000
MAX_VALUES = 20_000
MAX_DEPTH = 50
"""Of one message; what is beyond is left as it is, since looking through it takes too long."""

_BINARY = frozenset({"data", "blob"})

_T = TypeVar("_T")


def concealed(value: _T, spec: ServerSpec) -> _T:
    """`value`, a message of the SDK or any JSON, with every text in it concealed.

    Names, addresses and keys are no exception: one that held a secret cannot be used any more.
    What is unchanged stays the same object. Binary data and what is beyond the limits stay.
    """
    forms = spec.secret_forms()
    if not forms:
        return value
    changed: _T = _Pass(forms).done(value, 0)
    return changed


class _Pass:
    def __init__(self, forms: Sequence[str]) -> None:
        self._forms = forms
        self._values = MAX_VALUES
        self._chars = MAX_CHARS

    def done(self, value: Any, depth: int) -> Any:
        self._values -= 1
        if self._values < 0 or depth > MAX_DEPTH:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, BaseModel):
            return self._model(value, depth)
        if isinstance(value, dict):
            pairs = [
                (key, self.done(key, depth), each, self.done(each, depth + 1))
                for key, each in value.items()
            ]
            if all(key is name and old is new for key, name, old, new in pairs):
                return value
            return {name: new for _, name, _, new in pairs}
        if isinstance(value, list | tuple):
            items = [self.done(each, depth + 1) for each in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else type(value)(items)
        return value

    def _text(self, text: str) -> str:
        self._chars -= len(text)
        return without(text, self._forms) if self._chars >= 0 else text

    def _model(self, model: BaseModel, depth: int) -> BaseModel:
        update = {}
        for name in type(model).model_fields:
            old = getattr(model, name)
            new = old if name in _BINARY else self.done(old, depth + 1)
            if new is not old:
                update[name] = new
        return model.model_copy(update=update) if update else model
