"""The readable record of a chat: `transcript.md` for people, `events.jsonl` for programs.

Both lie in `.harness/record/`, so that a copy of the chat's folder is the whole chat.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.transcript_text import Made, run_text, version_line
from web.harness.builtin.versions import Version
from web.harness.values.events import Event, event_data
from web.harness.values.messages import AttachedBlock, ImageBlock, JsonObject
from web.harness.values.text import sayable

TRANSCRIPT, EVENTS = "transcript.md", "events.jsonl"
RECORD_NAMES = (TRANSCRIPT, EVENTS)

Versions = Mapping[str, Sequence[Version]]
"""The kept versions of each file, oldest first."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the person said at the beginning of a run. `at` is in seconds since 1970."""

    text: str
    at: float
    attachments: tuple[AttachedBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as the record has it: what was said, the model that answers, and all events so far."""

    id: str
    said: Said | None
    model: str
    events: Sequence[Event]


async def write_record(files: ChatFiles, title: str, runs: Iterable[RecordedRun]) -> None:
    """Writes both files or none. What is handed in is read in a thread."""
    every = tuple(runs)
    versions = await files.histories()
    await files.write_record(
        [
            (TRANSCRIPT, (piece.encode() for piece in transcript(title, every, versions))),
            (EVENTS, (line.encode() for line in event_lines(every))),
        ]
    )


def transcript(title: str, runs: Iterable[RecordedRun], versions: Versions) -> Iterator[str]:
    """The chat as markdown, run by run: what was said and done, when, and who allowed it; then its
    files with their versions.

    What somebody else wrote (results, attachments, arguments) stands in fences that it cannot end.
    """
    heading = " ".join(sayable(title).split())
    yield f"# {heading or 'Chat'}\n"
    made = _by_call(versions)
    for run in runs:
        attachments = run.said.attachments if run.said is not None else ()
        said = (run.said.text, run.said.at) if run.said is not None else None
        calls = made.get(run.id, {})
        for piece in run_text(said, attachments, run.model, run.events, calls):
            yield sayable(piece)
    if versions:
        yield "\n## Files\n\n"
        for path, every in sorted(versions.items()):
            yield sayable(f"- {json.dumps(path, ensure_ascii=False)}\n")
            yield from (sayable(f"    - {version_line(version)}\n") for version in every)


def event_lines(runs: Iterable[RecordedRun]) -> Iterator[str]:
    """One JSON object a line: `run`, `number`, `at` (ISO 8601, UTC), `type` and `data`.

    What the person said comes before the events of its run, as number 0 of the type `message`.
    """
    for run in runs:
        if run.said is not None:
            data = {
                "text": run.said.text,
                "model": run.model,
                "attachments": [_attached(each) for each in run.said.attachments],
            }
            yield _line(run.id, 0, run.said.at, "message", data)
        for event in run.events:
            yield _line(run.id, event.number, event.at, event.type, event_data(event.body))


def _line(run_id: str, number: int, at: float, kind: str, data: JsonObject) -> str:
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    line = {"run": run_id, "number": number, "at": moment, "type": kind, "data": data}
    # Escaped, for what a model sends may hold half a character, which no UTF-8 can.
    return json.dumps(line) + "\n"


def _attached(block: AttachedBlock) -> JsonObject:
    """An attachment without the bytes of a picture: its hash names them."""
    if not isinstance(block, ImageBlock):
        return asdict(block)
    size = len(block.data) or block.length
    names = ("type", "media_type", "sha256", "name", "width", "height", "left_out")
    return {**{name: getattr(block, name) for name in names}, "size": size}


def _by_call(versions: Versions) -> dict[str, dict[str, list[Made]]]:
    """What each call made, by run and call."""
    found: dict[str, dict[str, list[Made]]] = {}
    for path, every in sorted(versions.items()):
        for version in every:
            origin = version.origin
            if origin.call_id:
                calls = found.setdefault(origin.run_id, {})
                calls.setdefault(origin.call_id, []).append((path, version))
    return found
