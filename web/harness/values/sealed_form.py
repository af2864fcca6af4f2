"""Files of JSON that a person can look at and that tell when they were changed.

One field a line, and of the `long` field one item a line; `digest` is the SHA-256 of all the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Literal

from web.harness.values.json_form import Fields, JsonRefused, canonical, json_text
from web.harness.values.messages import JsonObject

Done = Literal["saved", "exported"]
"""What was done to make such a file, for the words of a refusal."""


def sealed(form: JsonObject, long: str) -> bytes:
    """The file of a form that JSON can hold. It blocks for as long as JSON takes."""
    return "".join(_lines({**form, "digest": digest_of(form, long)}, long)).encode()


def check_version(fields: Fields, known: int, done: Done) -> None:
    """Raises JsonRefused; with the code `from_the_future` for what a later version wrote."""
    version = fields.whole("version")
    if version > known:
        raise JsonRefused(
            f"It has version {version}; this program reads up to {known}.",
            hint=f"It was {done} by a later version of this program. Update this one.",
            code="from_the_future",
        )
    if version < 1:
        raise JsonRefused(f"Its version is {version}, and there is no such version.")


def check_seal(fields: Fields, form: JsonObject, long: str, done: Done) -> None:
    """Raises JsonRefused for a file that was changed. `fields` are those of `form`."""
    digest = fields.text("digest")
    if digest != digest_of({key: value for key, value in form.items() if key != "digest"}, long):
        raise JsonRefused(
            f"It was changed after it was {done}: its digest is that of something else."
        )


def digest_of(form: JsonObject, long: str) -> str:
    """Of the fields in the order of their names; item by item, so that threads take turns."""
    digest = hashlib.sha256()
    for name, value in sorted(form.items()):
        digest.update(canonical(name) + b":")
        for each in value if name == long and isinstance(value, list) else (value,):
            digest.update(canonical(each) + b"\n")
    return f"sha256:{digest.hexdigest()}"


def _lines(form: JsonObject, long: str) -> Iterator[str]:
    yield "{"
    for at, (name, value) in enumerate(form.items()):
        yield f"{',' if at else ''}\n{json_text(name)}:"
        yield from _items(value) if name == long else (json_text(value),)
    yield "\n}\n"


def _items(items: list[Any]) -> Iterator[str]:
    yield "["
    for at, item in enumerate(items):
        yield f"{',' if at else ''}\n{json_text(item)}"
    yield "\n]"
