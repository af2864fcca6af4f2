"""Frozen dataclasses as JSON and back, by the types of their fields.

Fields that hold their default are left out, texts and numbers stand as they are, a tuple is a list,
messages and blocks are in the form of `values.codec`. What was written comes back equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from web.harness.values.codec import (
    MESSAGE_VERSION,
    Keep,
    Load,
    message_from_json,
    message_to_json,
)
from web.harness.values.json_form import Fields, JsonRefused, json_copy, kind_of
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    Message,
    ResourceBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_BLOCKS: tuple[type, ...] = (ToolUseBlock, ToolResultBlock, ResourceBlock, ImageBlock)

_PLAIN: Mapping[type, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}


def to_json(value: Any, where: str, keep: Keep | None = None) -> Any:
    """Raises NotSerialisable, whose message names the value by `where`."""
    if isinstance(value, Message):
        return message_to_json(value, keep)
    if isinstance(value, ToolUseBlock | ToolResultBlock | ResourceBlock | ImageBlock):
        return message_to_json(Message(where, "user", (value,)), keep)["content"][0]
    if isinstance(value, tuple):
        return [to_json(each, where, keep) for each in value]
    if is_dataclass(value):
        form = {}
        for each in fields(value):
            held = getattr(value, each.name)
            if not _is_default(each, held):
                form[each.name] = to_json(held, f"{where}.{each.name}", keep)
        return form
    return json_copy(value, where)


def from_json(hint: Any, form: Any, where: str, load: Load | None = None) -> Any:
    """A value of that type. Raises JsonRefused, whose message names the field by `where`."""
    return _reader(hint)(form, where, load)


_Reader = Callable[[Any, str, Load | None], Any]


@lru_cache(maxsize=256)
def _reader(hint: Any) -> _Reader:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and not all(each in _BLOCKS for each in inner):
        return _optional([each for each in inner if each is not NoneType])
    if origin is tuple:
        return _items(_reader(inner[0]))
    if origin is Literal:
        return _one_of(inner)
    if hint is Message:
        return lambda form, where, load: message_from_json(form, load, where)
    if origin in (Union, UnionType) or hint in _BLOCKS:
        return _block(inner or (hint,))
    if hint in _PLAIN:
        return _plain(hint, *_PLAIN[hint])
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    if (origin or hint) is dict:
        return _mapping
    raise TypeError(f"There is no form of {hint}.")


def _optional(kinds: Sequence[Any]) -> _Reader:
    (kind,) = kinds
    inner = _reader(kind)
    return lambda form, where, load: None if form is None else inner(form, where, load)


def _items(inner: _Reader) -> _Reader:
    def read(form: Any, where: str, load: Load | None) -> Any:
        if not isinstance(form, list):
            raise _refused(where, form, "a list")
        return tuple(inner(each, f"{where}[{at}]", load) for at, each in enumerate(form))

    return read


def _one_of(values: tuple[Any, ...]) -> _Reader:
    def read(form: Any, where: str, _: Load | None) -> Any:
        if not isinstance(form, str) or form not in values:
            raise JsonRefused(f"{where} is {kind_of(form)}, which is not known.")
        return form

    return read


def _plain(kind: type, taken: tuple[type, ...], called: str) -> _Reader:
    def read(form: Any, where: str, _: Load | None) -> Any:
        if not isinstance(form, taken) or (isinstance(form, bool) and kind is not bool):
            raise _refused(where, form, called)
        return form

    return read


def _mapping(form: Any, where: str, _: Load | None) -> Any:
    if not isinstance(form, dict):
        raise _refused(where, form, "an object")
    return form


def _block(kinds: tuple[type, ...]) -> _Reader:
    def read(form: Any, where: str, load: Load | None) -> ContentBlock:
        whole = {"v": MESSAGE_VERSION, "id": "-", "role": "user", "content": [form]}
        block = message_from_json(whole, load, where).content[0]
        if not isinstance(block, kinds):
            raise JsonRefused(f"{where} is a {block.type}, which cannot stand there.")
        return block

    return read


def _object(kind: type) -> _Reader:
    hints = get_type_hints(kind)
    inner = {each.name: _reader(hints[each.name]) for each in fields(kind)}
    needed = {each.name for each in fields(kind) if _has_none(each)}

    def read(form: Any, where: str, load: Load | None) -> Any:
        given = Fields(form, where).rest()
        unknown = sorted(given.keys() - inner.keys())
        if unknown:
            raise JsonRefused(f"{where}.{unknown[0]} is not known.")
        missing = sorted(needed - given.keys())
        if missing:
            raise JsonRefused(f"{where}.{missing[0]} is missing.")
        return kind(
            **{name: inner[name](each, f"{where}.{name}", load) for name, each in given.items()}
        )

    return read


def _is_default(each: Field[Any], value: Any) -> bool:
    if each.default is not MISSING:
        return bool(type(value) is type(each.default) and value == each.default)
    if each.default_factory is not MISSING:
        return bool(value == each.default_factory())
    return False


def _has_none(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _refused(where: str, form: Any, called: str) -> JsonRefused:
    return JsonRefused(f"{where} is {kind_of(form)} and has to be {called}.")
