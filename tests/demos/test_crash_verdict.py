"""What the crash demo counts: each thing that may not happen is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from web.demos.crash.seen import Seen, Shown
from web.demos.crash.story import BEFORE, CALLS, final_text
from web.demos.crash.verdict import Begun, judge

RESULTS = {name: f"result of {name}" for name, _ in CALLS}
AFTER = final_text(RESULTS)
KEYS = {name: f"key of {name}" for name, _ in CALLS}


def text(message_id: str, words: str) -> list[tuple[str, dict[str, Any]]]:
    half = len(words) // 2
    parts = (words[:half], words[half:])
    return [("text_delta", {"text": part, "message_id": message_id}) for part in parts]


def told() -> list[tuple[str, dict[str, Any]]]:
    """The events of a run that was killed while its tools ran, and in its last text."""
    starts = [("tool_call_start", {"call_id": KEYS[name], "name": name}) for name in KEYS]
    ends = {
        name: (
            "tool_result",
            {"call_id": KEYS[name], "name": name, "text": RESULTS[name], "is_error": False},
        )
        for name in KEYS
    }
    letter = {"call_id": KEYS["post_letter"], "name": "post_letter", "key": "q"}
    return [
        *text("a", BEFORE),
        *starts,
        ends["look_up_tide"],
        # Killed, and begun again.
        ("recovery_required", letter),
        starts[1],
        ends["measure_basin"],
        ("recovery_answered", {**letter, "how": "result"}),
        ends["post_letter"],
        ("text_delta", {"text": "## What came", "message_id": "b"}),
        ("attempt_reset", {"message_id": "b"}),
        *text("b", AFTER),
        ("run_result", {"status": "completed", "text": AFTER, "reason": ""}),
    ]


@dataclass
class Case:
    """All that a verdict is made from, of a run in which all held."""

    events: list[Shown] = field(
        default_factory=lambda: [Shown(at, *each) for at, each in enumerate(told(), 1)]
    )
    began: Counter[tuple[str, str]] = field(
        default_factory=lambda: Counter(
            {(name, key): 2 if name == "measure_basin" else 1 for name, key in KEYS.items()}
        )
    )
    kept: list[str] = field(default_factory=lambda: [BEFORE, AFTER])
    again: list[Shown] | None = None

    def faults(self) -> list[str]:
        seen = Seen()
        kills = []
        for event in self.events:
            if event.type == "recovery_required":
                began = Counter(dict.fromkeys(KEYS.items(), 1))
                kills.append(Begun.at(seen, began))
            seen.take(event)
        messages = [
            {"role": "assistant", "content": [{"type": "text", "text": each}]} for each in self.kept
        ]
        again = self.again if self.again is not None else self.events
        return judge(seen, kills, self.began, messages, again).faults


def test_a_run_in_which_all_held_has_no_fault() -> None:
    assert Case().faults() == []


def test_joined_deltas_at_the_end_are_no_fault() -> None:
    case = Case()
    joined = Shown(2, "text_delta", {"text": BEFORE, "message_id": "a"})
    case.again = [joined, *case.events[2:]]
    assert case.faults() == []


def test_what_an_earlier_demo_left_in_its_store_is_no_fault() -> None:
    case = Case()
    case.began["measure_basin", "story_run-of-another-demo_1"] += 2
    assert case.faults() == []


def miss_a_step(case: Case) -> None:
    del case.events[5]


def double_an_event(case: Case) -> None:
    case.events.insert(6, case.events[5])


def use_a_number_twice(case: Case) -> None:
    case.events.insert(6, case.events[5]._replace(type="note", data={"text": "another"}))


def miss_a_word(case: Case) -> None:
    case.events[1] = case.events[1]._replace(data={"text": "", "message_id": "a"})


def show_a_text_twice(case: Case) -> None:
    reset = next(each for each in case.events if each.type == "attempt_reset")
    case.events[case.events.index(reset)] = reset._replace(type="note", data={"text": ""})


def run_again_what_had_ended(case: Case) -> None:
    case.began["look_up_tide", KEYS["look_up_tide"]] += 1


def repeat_in_silence(case: Case) -> None:
    case.began["post_letter", KEYS["post_letter"]] += 1


def take_another_key(case: Case) -> None:
    case.began["measure_basin", "another"] += 1


def keep_half(case: Case) -> None:
    case.kept[1] = AFTER[:100]


def keep_twice(case: Case) -> None:
    case.kept.insert(1, BEFORE)


def fail(case: Case) -> None:
    data = {"status": "failed", "text": "", "reason": "internal_error"}
    case.events[-1] = case.events[-1]._replace(data=data)


def tell_something_else_later(case: Case) -> None:
    case.again = [*case.events[:1], *case.events[2:]]


def drop_events(case: Case) -> None:
    case.events.insert(3, Shown(0, "gap", {"after": 3, "next": 4}))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (miss_a_step, "no event between 5 and 7"),
        (double_an_event, "came again"),
        (use_a_number_twice, "came again"),
        (miss_a_word, "shown is not what the model says"),
        (show_a_text_twice, "shown is not what the model says"),
        (run_again_what_had_ended, "look_up_tide had ended, and was run again"),
        (repeat_in_silence, "post_letter was repeated"),
        (take_another_key, "measure_basin ran with 2 keys"),
        (keep_half, "the chat keeps"),
        (keep_twice, "the chat keeps"),
        (fail, "ended as failed, internal_error"),
        (tell_something_else_later, "something else when they are read once more"),
        (drop_events, "no longer kept"),
    ],
)
def test_what_may_not_happen_is_a_fault(spoil: Callable[[Case], None], words: str) -> None:
    case = Case()
    spoil(case)
    assert any(words in fault for fault in case.faults()), case.faults()


def test_a_letter_that_a_person_had_posted_again_is_no_fault() -> None:
    case = Case()
    repeat_in_silence(case)
    asked = next(each for each in case.events if each.type == "recovery_answered")
    case.events[case.events.index(asked)] = asked._replace(data={**asked.data, "how": "retry"})
    assert case.faults() == []


def test_what_was_shown_has_to_be_there_when_it_is_read_again() -> None:
    seen = Seen()
    events = Case().events[:8]
    for event in events:
        seen.take(event)
    assert seen.differs(events) == ""
    assert seen.differs(events[:6]) == "2 events that were shown are gone"
    joined = [events[1]._replace(data={"text": BEFORE, "message_id": "a"}), *events[2:]]
    assert seen.differs(joined) == ""
    other = [*events[:3], events[3]._replace(data={"call_id": "x", "name": "x"}), *events[4:]]
    assert seen.differs(other) == "event 4 is another one now"
