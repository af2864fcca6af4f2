"""Whether all held that was promised, after a server was killed in the middle of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from web.demos.crash.seen import Seen, Shown
from web.demos.crash.story import BEFORE, asked_by, final_text

Runs = Counter[tuple[str, str]]
"""How often a tool began, by its name and the key of the call."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What had begun, and which calls had ended, when a server ended."""

    began: Runs
    ended: frozenset[str]

    @classmethod
    def at(cls, seen: Seen, began: Runs) -> Begun:
        ended = (key for key, call in seen.calls.items() if call.result is not None)
        return cls(began, frozenset(ended))


@dataclass(frozen=True, slots=True)
class Verdict:
    """`lines` say what was counted; `faults` what should not be."""

    lines: list[str]
    faults: list[str]

    @property
    def held(self) -> bool:
        return not self.faults


def judge(
    seen: Seen,
    kills: Sequence[Begun],
    began: Runs,
    messages: Sequence[dict[str, Any]],
    again: Sequence[Shown],
) -> Verdict:
    """`messages` are those of the chat, `again` the events of the whole run, read at the end."""
    began = _of_this_run(seen, began)
    faults = [
        *seen.faults,
        *_text_faults(seen, messages, again),
        *_tool_faults(seen, kills, began),
    ]
    runs: Counter[str] = Counter()
    for (name, _), times in began.items():
        runs[name] += times
    counted = [f"{name} began {_times(times)}" for name, times in runs.items()]
    lines = [
        f"The server was killed {_times(len(kills))}.",
        f"Events  1 to {seen.last}, each seen once." if not seen.faults else "Events  not right.",
        f"Text    {seen.words} words, {seen.taken_back} more were shown and taken back.",
        f"Tools   {', '.join(counted)}.",
        *(f"WRONG   {fault}." for fault in faults),
    ]
    return Verdict(lines, faults)


def _of_this_run(seen: Seen, began: Runs) -> Runs:
    """What an earlier demo left in a store that outlives it goes on, too."""
    ours = {asked_by(key) for key in seen.calls} | {""}
    return Counter({each: times for each, times in began.items() if asked_by(each[1]) in ours})


def _text_faults(
    seen: Seen, messages: Sequence[dict[str, Any]], again: Sequence[Shown]
) -> list[str]:
    faults = []
    result = seen.result or {}
    results = {call.name: call.result for call in seen.calls.values() if call.result is not None}
    given_up = result.get("reason") == "given_up"
    told = [BEFORE] if given_up else [BEFORE, final_text(results)]
    if list(seen.texts.values()) != told:
        faults.append("the text that was shown is not what the model says")
    if not given_up and (result.get("status"), result.get("text")) != ("completed", told[-1]):
        faults.append(f"the run ended as {result.get('status')}, {result.get('reason')}")
    kept = [
        "".join(block["text"] for block in message["content"] if block["type"] == "text")
        for message in messages
        if message["role"] == "assistant"
    ]
    if kept != told:
        faults.append("the text that the chat keeps is not what the model says")
    reader = Seen()
    for event in again:
        reader.take(event)
    if reader.texts != seen.texts or reader.last != seen.last:
        faults.append("the events say something else when they are read once more")
    return faults


def _tool_faults(seen: Seen, kills: Sequence[Begun], began: Runs) -> list[str]:
    faults = []
    for kill in kills:
        for (name, key), times in began.items():
            if key in kill.ended and times > kill.began[name, key]:
                faults.append(f"{name} had ended, and was run again")
    keys = Counter(name for name, _ in began)
    faults += [f"{name} ran with {count} keys" for name, count in keys.items() if count > 1]
    posted = sum(times for (name, _), times in began.items() if name == "post_letter")
    if posted > 1 + seen.retries:
        faults.append("post_letter was repeated, and nobody had said so")
    return faults


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
