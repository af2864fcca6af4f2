"""What of a run's events a person at a terminal wants to hear."""

from __future__ import annotations

from web.demos.crash.saying import say
from web.demos.crash.seen import Seen, Shown

FIRST_WORDS = 8
"""Of a text, when it is told that it is written."""

MOST_CHARS = 70

_HOW = {
    "result": "it ran, and that is its result",
    "retry": "it runs once more",
    "abort": "the answer is given up",
    "withdrawn": "not any more: the answer was stopped",
}


class Telling:
    """Takes events in and tells of some of them."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._told: set[str] = set()
        """The texts that it was said of that they are written."""

    def take(self, event: Shown) -> None:
        seen, data = self._seen, event.data
        taken = seen.taken_back
        started = {key for key, call in seen.calls.items() if call.starts}
        seen.take(event)
        match event.type:
            case "text_delta":
                self._tell_of(data["message_id"])
            case "attempt_reset" if seen.taken_back > taken:
                self._told.discard(data["message_id"])
                say("Taken back", f"{seen.taken_back - taken} words of an unfinished answer")
            case "tool_call_start" if data["call_id"] in started:
                say("Resumed", f"{data['name']}, with the key that it had")
            case "tool_call_start":
                say("Runs", data["name"])
            case "tool_result":
                say("Ended", _cut(f"{data['name']}: {data['text']}"))
            case "recovery_required":
                say("Undecided", f"{data['name']} had started; nobody knows if it did its work")
            case "recovery_answered":
                say("Decided", _HOW[data["how"]])

    def _tell_of(self, message_id: str) -> None:
        words = self._seen.texts[message_id].split()
        if message_id not in self._told and len(words) >= FIRST_WORDS:
            self._told.add(message_id)
            say("Writes", f"{' '.join(words[:FIRST_WORDS]).lstrip('# ')} …")


def tell_kept(seen: Seen) -> None:
    """What the next server has of the run, all of it as it was."""
    kept = ["the message", f"{len(seen.events)} events", f"{seen.words} words"]
    kept += [f"the result of {each.name}" for each in seen.calls.values() if each.result]
    say("Kept", ", ".join(kept))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}…"
