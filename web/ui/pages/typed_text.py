"""What a person wrote into a form that was refused, for an error page to keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

FORM_FIELD = re.compile(r"f[0-9]+")
NEVER_SHOWN = ("secrets", "files")
"""Fields whose text no page ever holds: what may be secret, and names of files without them."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The field that was written in, its text, and the other fields."""

    name: str = ""
    text: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


def typed(request: Request) -> Typed:
    """What was typed into the form of this request."""
    fields: dict[str, str] = getattr(request.state, "fields", {})
    for name in ("text", "arguments", "reason", "title", "target"):
        if fields.get(name):
            hidden = (name, *NEVER_SHOWN)
            others = {key: value for key, value in fields.items() if key not in hidden}
            return Typed(name, fields[name], others)
    # A tool's form has fields without names of their own; see `field_names`.
    answers = [text for name, text in fields.items() if FORM_FIELD.fullmatch(name) and text]
    return Typed("answers", "\n".join(answers))
