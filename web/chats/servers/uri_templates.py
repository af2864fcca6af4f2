"""Templates of addresses as servers write them, filled in as RFC 6570 says.

Every value is one text, so a list or a map is never expanded; an empty value is an undefined one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

MAX_TEMPLATE_CHARS = 4_000
MAX_VARIABLES = 20

_PIECE = re.compile(r"\{([^{}]*)\}|([^{}]+)|(.)", re.DOTALL)
_VARIABLE = re.compile(r"([\w.%]{1,100})(?::(\d{1,4})|\*)?", re.ASCII)
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_RESERVED = ":/?#[]@!$&'()*+,;=%"


@dataclass(frozen=True, slots=True)
class _Operator:
    """What stands before the first value and between two, and whether names are written too."""

    first: str = ""
    between: str = ","
    named: bool = False
    reserved: bool = False


_OPERATORS = {
    "": _Operator(),
    "+": _Operator(reserved=True),
    "#": _Operator("#", reserved=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True),
    "&": _Operator("&", "&", named=True),
}


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: _Operator
    variables: tuple[tuple[str, int | None], ...]
    """Name, and how many characters of the value are taken (None: all)."""

    def expanded(self, values: Mapping[str, str]) -> str:
        parts = [
            self._part(name, values[name][:length])
            for name, length in self.variables
            if values.get(name)
        ]
        return self.operator.first + self.operator.between.join(parts) if parts else ""

    def _part(self, name: str, value: str) -> str:
        if self.operator.reserved:
            # What is written in percents already stays; any other percent sign is a sign.
            written = quote(_LONE_PERCENT.sub("%25", value), safe=_RESERVED, errors="replace")
        else:
            written = quote(value, safe="", errors="replace")
        return f"{name}={written}" if self.operator.named else written


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A template that was understood."""

    pieces: tuple[str | _Expression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables in their order, each once."""
        expressions = [piece for piece in self.pieces if isinstance(piece, _Expression)]
        return tuple(dict.fromkeys(name for each in expressions for name, _ in each.variables))

    def expanded(self, values: Mapping[str, str]) -> str:
        """The address with these values."""
        return "".join(
            piece if isinstance(piece, str) else piece.expanded(values) for piece in self.pieces
        )


def read_template(text: str) -> UriTemplate:
    """Raises ValueError in words for a template that cannot be filled in."""
    if len(text) > MAX_TEMPLATE_CHARS:
        raise ValueError(f"it has more than {MAX_TEMPLATE_CHARS:,} characters")
    pieces: list[str | _Expression] = []
    for match in _PIECE.finditer(text):
        if match[3] is not None:
            raise ValueError("a brace in it has no other one")
        pieces.append(match[2] if match[2] is not None else _expression(match[1]))
    template = UriTemplate(tuple(pieces))
    if len(template.names) > MAX_VARIABLES:
        raise ValueError(f"it has more than {MAX_VARIABLES} variables")
    return template


def _expression(inside: str) -> _Expression:
    sign = inside[:1] if inside[:1] in _OPERATORS else ""
    variables: list[tuple[str, int | None]] = []
    for spec in inside[len(sign) :].split(","):
        match = _VARIABLE.fullmatch(spec)
        if match is None:
            raise ValueError(f"{{{inside[:40]}}} in it is no expression of a template")
        variables.append((match[1], int(match[2]) if match[2] else None))
    return _Expression(_OPERATORS[sign], tuple(variables))
