"""A run with its steps as one file, to be looked at on another machine.

| field | |
|---|---|
| format | `harness-web run`, by which the file is known |
| version | of this form, 1 |
| run_id, title | of the run, and of its chat |
| exported_at | seconds since the epoch |
| steps | as in `ShownStep`; what holds its default is left out |
| digest | SHA-256 of all the rest, by which a file that was changed is known |

What looks like a secret is not in it. A field that is not in this table is refused; a later version
may add some with a higher number.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, get_args

from web.chats.steps.step_kinds import ShownStep, StepCall
from web.harness.sessions.journal import StepKind
from web.harness.values.errors import HarnessError, LimitExceeded
from web.harness.values.json_form import (
    Fields,
    JsonRefused,
    NotSerialisable,
    json_copy,
    kind_of,
    parse_json,
    writable,
)
from web.harness.values.messages import JsonObject
from web.harness.values.sealed_form import check_seal, check_version, sealed
from web.harness.values.secret_names import without_secrets
from web.harness.values.text import amount
from web.harness.values.usage import Usage

FORMAT = "harness-web run"
VERSION = 1

LONG = "steps"
"""The field whose items have a line each."""

MAX_RUN_FILE_BYTES = 32 * 1024 * 1024
MAX_STEPS = 100_000
"""Of a file that is written or read: so that what is opened takes some hundred megabytes at most.
"""

LATEST = 250_000_000_000.0
"""In the year 9892: what comes later no calendar shows."""

_MARK = re.compile(
    rb'(?:\xef\xbb\xbf)?\s{0,100}\{\s{0,100}"format"\s{0,100}:\s{0,100}"harness-web run"'
)

_KINDS: tuple[str, ...] = get_args(StepKind)


class RunFileRefused(HarnessError):
    """A file is not that of a run, or not as it was exported; the message says where and why."""

    code = "run_file_refused"


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run as it was exported, `exported_at` seconds since the epoch. `title` is its chat's."""

    run_id: str
    title: str
    exported_at: float
    steps: tuple[ShownStep, ...]


def is_run_file(data: bytes) -> bool:
    """Whether a file says that it is one."""
    return _MARK.match(data) is not None


def write_run_file(run: RunFile, max_bytes: int = MAX_RUN_FILE_BYTES) -> bytes:
    """One step a line. Raises LimitExceeded. It blocks for as long as JSON takes."""
    if len(run.steps) > MAX_STEPS:
        raise LimitExceeded(
            f"This run has {len(run.steps):,} steps; a file may have {MAX_STEPS:,}.",
            hint="Its steps can be looked at in its chat.",
            code="too_large",
        )
    steps = [writable(without_secrets(_step_form(step))) for step in run.steps]
    form = {
        "format": FORMAT,
        "version": VERSION,
        "run_id": run.run_id,
        "title": writable(without_secrets(run.title)),
        "exported_at": run.exported_at,
        "steps": steps,
    }
    data = sealed(form, LONG)
    _check_size(len(data), max_bytes, "This run would have")
    return data


def read_run_file(data: bytes, max_bytes: int = MAX_RUN_FILE_BYTES) -> RunFile:
    """A run, checked throughout.

    Raises RunFileRefused with what is wrong with it (`from_the_future` for a later version),
    LimitExceeded. It blocks for as long as JSON takes.
    """
    _check_size(len(data), max_bytes, "This file has")
    try:
        return _read(parse_json(data))
    except (JsonRefused, NotSerialisable) as error:
        raise RunFileRefused(
            f"This run cannot be opened. {error.message}",
            hint=(error.hint if isinstance(error, JsonRefused) else "")
            or "Nothing was opened. Use the file as it was exported.",
            code=error.code if error.code == "from_the_future" else None,
        ) from None


def _check_size(size: int, max_bytes: int, what: str) -> None:
    if size > max_bytes:
        raise LimitExceeded(
            f"{what} {amount(size)}; a run's file may have {amount(max_bytes)}.",
            hint="Its steps can be looked at in its chat.",
            code="too_large",
        )


def _read(form: Any) -> RunFile:
    given = Fields(form, "")
    if not given.has("format") or given.take("format") != FORMAT:
        raise JsonRefused("It is JSON, but no run of this program.")
    check_version(given, VERSION, "exported")
    check_seal(given, form, LONG, "exported")
    steps = given.items("steps")
    if len(steps) > MAX_STEPS:
        raise JsonRefused(f"It has {len(steps):,} steps; at most {MAX_STEPS:,} are read.")
    run = RunFile(
        given.text("run_id"),
        given.text("title"),
        given.number_or_none("exported_at") or 0.0,
        tuple(_step(step, at) for at, step in enumerate(steps)),
    )
    given.done()
    return run


def _step(form: Any, place: int) -> ShownStep:
    given = Fields(form, f"steps[{place}]")
    if (number := given.whole("number")) != place + 1:
        raise JsonRefused(f"{given.name('number')} is {number}: steps are numbered from 1.")
    if (at := given.number_or_none("at") or 0.0) > LATEST:
        raise JsonRefused(f"{given.name('at')} is no time.")
    kind = given.text("kind")
    if kind not in _KINDS:
        raise JsonRefused(f"{given.name('kind')} is {kind_of(kind)}, which is no step.")
    usage = given.take("usage") if given.has("usage") else None
    step = ShownStep(
        number,
        at,
        kind,  # type: ignore[arg-type]
        given.whole("cursor", 0),
        model=given.text("model", ""),
        seconds=given.number_or_none("seconds"),
        usage=None if usage is None else _usage(usage, given.name("usage")),
        cost=given.number_or_none("cost"),
        roles=_texts(given, "roles"),
        text=given.text("text", ""),
        thinking=given.text("thinking", ""),
        attachments=_texts(given, "attachments"),
        calls=tuple(
            _call(call, f"{given.name('calls')}[{at}]")
            for at, call in enumerate(given.items("calls", []))
        ),
        how=given.text("how", ""),
        words=given.text("words", ""),
        wait=given.number_or_none("wait"),
        about=json_copy(given.mapping("about", {}), given.name("about")),
        forks=given.flag("forks", False),
    )
    given.done()
    return step


def _call(form: Any, where: str) -> StepCall:
    given = Fields(form, where)
    call = StepCall(
        given.text("call_id"),
        given.text("name"),
        _object_or_none(given, "arguments"),
        given.text("malformed", ""),
        given.text("replay", ""),
        given.text("refusal", ""),
        given.text("decision", ""),
        given.flag("edited", False),
        _object_or_none(given, "asks"),
        given.text_or_none("result"),
        given.flag("is_error", False),
        given.whole("pictures", 0),
        given.number_or_none("seconds"),
    )
    given.done()
    return call


def _object_or_none(given: Fields, name: str) -> JsonObject | None:
    if not given.has(name):
        return None
    value: JsonObject = json_copy(given.mapping(name), given.name(name))
    return value


def _usage(form: Any, where: str) -> Usage:
    given = Fields(form, where)
    usage = Usage(**{name: given.whole(name, 0) for name in Usage.__slots__})
    given.done()
    return usage


def _texts(given: Fields, name: str) -> tuple[str, ...]:
    values = given.items(name, [])
    for at, each in enumerate(values):
        if not isinstance(each, str):
            raise JsonRefused(f"{given.name(name)}[{at}] is {kind_of(each)} and has to be a text.")
    return tuple(values)


def _step_form(step: ShownStep) -> JsonObject:
    form = _without_defaults(step)
    if step.calls:
        form["calls"] = [_without_defaults(call) for call in step.calls]
    if step.usage is not None:
        form["usage"] = asdict(step.usage)
    for name in ("roles", "attachments"):
        if name in form:
            form[name] = list(form[name])
    return form


def _without_defaults(value: ShownStep | StepCall) -> JsonObject:
    form: JsonObject = {}
    for field in fields(value):
        held = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if held != default:
            form[field.name] = held
    return form
