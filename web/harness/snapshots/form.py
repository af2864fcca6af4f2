"""A snapshot as JSON and back, with everything checked.

| field | |
|---|---|
| format | `harness-web snapshot`, by which the file is known |
| version | of this form, 1 |
| session_id | also the name of its file |
| created_at, updated_at | ISO 8601, in UTC |
| config | as `AgentConfig.to_dict` gives it |
| usage, cost | tokens, and US dollars or null |
| learned_limits | as `LearnedLimits.as_json` gives them |
| metadata, extensions | JSON of the application, and of each extension by its name |
| pinned | ids of messages |
| messages | in the form of `values.codec` |
| digest | SHA-256 of all the rest, by which a file that was changed is known |

A field that is not in this table is refused; a later version may add some with a higher number.
"""

from __future__ import annotations

from datetime import UTC, datetime

from web.harness.snapshots.harnessx import is_harnessx, read_harnessx
from web.harness.snapshots.parts import (
    checked_pictures,
    cost_of,
    json_objects,
    seconds,
    usage_of,
)
from web.harness.snapshots.snapshot import Snapshot, checked_session_id
from web.harness.values.codec import messages_from_json, messages_to_json
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ConfigurationError, LimitExceeded, SnapshotRefused
from web.harness.values.json_form import (
    Fields,
    JsonRefused,
    exact,
    fits,
    json_copy,
    kind_of,
    parse_json,
    writable,
)
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import JsonObject
from web.harness.values.sealed_form import check_seal, check_version, sealed
from web.harness.values.secret_names import refuse_secrets
from web.harness.values.text import amount

FORMAT = "harness-web snapshot"
VERSION = 1

LONG = "messages"
"""The field whose items have a line each."""

MOST = {"metadata": 1_000_000, "extensions": 4_000_000, "learned_limits": 500_000}
"""Characters of JSON that these may have; they are copied as a whole, again and again."""

NOT_SAVED = "Nothing was written; what was saved before is as it was."

_NEARLY = ("messages", "created_at", "updated_at", "learned_limits")

NO_WAY_BACK = "conversation_broken"
"""The code of the refusal to write what could not be read."""

MAX_SNAPSHOT_BYTES = 256 * 1024 * 1024
"""Of a snapshot that is written or read, unless another limit is given."""


def write_snapshot(snapshot: Snapshot, max_bytes: int = MAX_SNAPSHOT_BYTES) -> bytes:
    """The file of a snapshot: one field a line, and one message a line.

    Raises NotSerialisable, LimitExceeded, ConfigurationError for a secret in it, and
    SnapshotRefused for what could not be read again as it is. It blocks for as long as JSON takes.
    """
    checked_session_id(snapshot.session_id)
    form = {
        name: [writable(each) for each in value] if name == LONG else exact(value, name)
        for name, value in _form(snapshot, messages_to_json(snapshot.messages)).items()
    }
    data = sealed(form, LONG)
    if len(data) > max_bytes:
        raise LimitExceeded(
            f"This snapshot would have {amount(len(data))}; the limit is {amount(max_bytes)}.",
            hint="Leave pictures or old tool results out of the conversation. Nothing was written.",
            code="snapshot_too_large",
        )
    _check_it_is_back(data, snapshot)
    return data


def _check_it_is_back(data: bytes, snapshot: Snapshot) -> None:
    """Raises SnapshotRefused where the file of a snapshot would not be read as that snapshot: it
    may go to the place of a good one."""
    try:
        back = _read(parse_json(data))
    except (JsonRefused, ConfigurationError, LimitExceeded, SnapshotRefused) as error:
        raise SnapshotRefused(
            f"This session cannot be saved: {error.message}", hint=NOT_SAVED, code=NO_WAY_BACK
        ) from None
    # Half a character in a message was written as the mark for it, times to the microsecond, and
    # of what was learned all fields; the rest comes back equal.
    for name in Snapshot.__slots__:
        if name not in _NEARLY and getattr(back, name) != getattr(snapshot, name):
            raise SnapshotRefused(
                f"This session cannot be saved: {name} would come back as something else.",
                hint=NOT_SAVED,
                code=NO_WAY_BACK,
            )


def read_snapshot(data: bytes, max_bytes: int = MAX_SNAPSHOT_BYTES) -> Snapshot:
    """A snapshot of this library or of harnessx, checked throughout.

    Raises SnapshotRefused with what is wrong with it, LimitExceeded for one that is too large. It
    blocks for as long as JSON takes.
    """
    check_size(len(data), max_bytes)
    try:
        form = parse_json(data)
        if not isinstance(form, dict):
            raise JsonRefused(f"It is {kind_of(form)} and has to be an object.")
        return read_harnessx(form) if is_harnessx(form) else _read(form)
    except (JsonRefused, ConfigurationError) as error:
        own = error.code in ("from_the_future",)
        raise SnapshotRefused(
            f"This snapshot cannot be used. {error.message}",
            hint=error.hint or "Nothing was loaded. Use the file as it was saved.",
            code=error.code if own else None,
        ) from None


def check_size(size: int, max_bytes: int) -> None:
    """Raises LimitExceeded for a snapshot of more bytes than that."""
    if size > max_bytes:
        raise LimitExceeded(
            f"This snapshot has {amount(size)}; the limit is {amount(max_bytes)}.",
            hint="Nothing was loaded.",
            code="snapshot_too_large",
        )


def _form(snapshot: Snapshot, messages: list[JsonObject]) -> JsonObject:
    usage = snapshot.usage
    for name, most in MOST.items():
        if not fits(getattr(snapshot, name), most):
            raise LimitExceeded(
                f"The {_plain(name)} of this session are larger than {amount(most)}, the limit.",
                hint=f"Keep what is large elsewhere. {NOT_SAVED}",
                code="snapshot_too_large",
            )
    return {
        "format": FORMAT,
        "version": VERSION,
        "session_id": snapshot.session_id,
        "created_at": _iso(snapshot.created_at),
        "updated_at": _iso(snapshot.updated_at),
        "config": snapshot.config.to_dict(),
        "usage": {name: getattr(usage, name) for name in usage.__slots__},
        "cost": json_copy(snapshot.cost, "cost"),
        "learned_limits": json_copy(snapshot.learned_limits, "learned_limits"),
        "metadata": _open(snapshot.metadata, "metadata"),
        "extensions": _open(snapshot.extensions, "extensions"),
        "pinned": list(snapshot.pinned),
        "messages": messages,
    }


def _read(form: JsonObject) -> Snapshot:
    fields = Fields(form, "")
    if not fields.has("format"):
        raise JsonRefused("It is JSON, but no snapshot: it names no format.")
    if (named := fields.take("format")) != FORMAT:
        raise JsonRefused(f"Its format is {kind_of(named)}, which is not known here.")
    check_version(fields, VERSION, "saved")
    for name, most in MOST.items():
        if not fits(form.get(name), most):
            raise JsonRefused(
                f"Its {_plain(name)} are larger than {amount(most)}, which is the limit."
            )
    check_seal(fields, form, LONG, "saved")
    messages = checked_pictures(messages_from_json(fields.items("messages")))
    pinned = fields.items("pinned")
    ids = {message.id for message in messages}
    for at, each in enumerate(pinned):
        if not isinstance(each, str) or each not in ids:
            raise JsonRefused(f"pinned[{at}] is {kind_of(each)}, which is no message of it.")
    snapshot = Snapshot(
        checked_session_id(fields.text("session_id")),
        AgentConfig.from_dict(fields.mapping("config")),
        messages,
        usage_of(fields.mapping("usage")),
        cost_of(fields),
        LearnedLimits.from_json(fields.mapping("learned_limits")).as_json(),
        tuple(pinned),
        json_objects({"metadata": fields.mapping("metadata")})["metadata"],
        json_objects(fields.mapping("extensions"), "extensions"),
        seconds(fields, "created_at"),
        seconds(fields, "updated_at"),
    )
    fields.done()
    return snapshot


def _open(value: JsonObject, where: str) -> JsonObject:
    """A copy in which there is no secret. Raises NotSerialisable, ConfigurationError."""
    copy: JsonObject = json_copy(value, where)
    refuse_secrets(copy, where)
    return copy


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
