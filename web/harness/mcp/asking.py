"""A server asks the person something while a tool runs: the question, and who is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from web.harness.values.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Elicitation:
    """One question. A form has a flat object `schema`; in URL mode the person goes to `url`.

    With a `state` the call can go on from it when the answer comes after this process has ended.
    """

    server: str
    message: str
    mode: Literal["form", "url"] = "form"
    schema: JsonObject | None = None
    url: str = ""
    state: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """What the person said; `content` holds the fields of an accepted form."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


Asker = Callable[[Elicitation], Awaitable[ElicitationAnswer]]
"""Puts a question to the person. Several may be open at once; cancelled with the call."""
