"""What the page shows of a run that a person stopped, until it has its end."""

from __future__ import annotations

from tests.support.transcript_page import C, M, Page
from web.chats.parts.kinds import Notice
from web.chats.transcript.transcript import UNREACHABLE
from web.harness.values.events import ApprovalRequired, RunResult, TextDelta, ToolCallStart
from web.harness.values.usage import Usage


def notices(page: Page) -> list[str]:
    return [data.text for data in page.log() if isinstance(data, Notice)]


def test_from_the_click_on_it_is_stopping_whatever_it_waited_for() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    page.transcript.stand_alone("r", "temporal")
    assert notices(page) == [UNREACHABLE]
    page.transcript.stopping("r")
    # Nobody has to wait for that any more, and what is still heard changes nothing.
    page.transcript.stand_alone("r", "temporal")
    page.happens(TextDelta(M, "A little more."), ToolCallStart(C, "pay", {"sum": 5}, M))
    assert (notices(page), page.transcript.missing("r")) == ([], "")
    assert (page.transcript.status.state, page.transcript.status.text) == ("working", "Stopping")
    page.happens(RunResult("cancelled", "", Usage(), None, reason="stopped"))
    assert (page.transcript.status.state, page.transcript.status.text) == ("idle", "Stopped")


def test_who_stops_a_run_that_asks_is_asked_no_more() -> None:
    page = Page().happens(ApprovalRequired("k", C, "pay", {"sum": 5}, M))
    assert page.transcript.status.state == "asking"
    page.transcript.stopping("r")
    assert (page.transcript.status.state, page.transcript.status.text) == ("working", "Stopping")


def test_a_run_that_is_paused_comes_to_a_pause_until_it_stands_still() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    page.transcript.stand_alone("r", "temporal")
    page.transcript.stopping("r", pauses=True)
    # It pauses once Temporal answers.
    assert notices(page) == [UNREACHABLE]
    page.happens(TextDelta(M, "A little more."), ToolCallStart(C, "pay", {"sum": 5}, M))
    assert (page.transcript.status.state, page.transcript.status.text) == ("working", "Pausing")
    page.transcript.halt("r", "paused")
    assert page.transcript.status.text == "Paused"
    page.transcript.go_on("r")
    assert page.transcript.status.text == "Working"


def test_a_run_that_goes_on_after_all_is_not_pausing() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    page.transcript.stopping("r", pauses=True)
    page.transcript.go_on("r")
    assert page.transcript.status.text == "Working"
    page.transcript.stopping("r")
    page.transcript.stopping("r", pauses=True)
    assert page.transcript.status.text == "Stopping"


def test_a_run_that_stands_still_or_has_ended_is_not_stopping() -> None:
    page = Page().happens(TextDelta(M, "The first half. "))
    page.transcript.halt("r", "paused")
    page.transcript.stopping("r")
    page.transcript.stopping("r", pauses=True)
    assert page.transcript.status.text == "Paused"
    page.happens(RunResult("cancelled", "", Usage(), None, reason="stopped"))
    page.transcript.stopping("r")
    assert page.transcript.status.text == "Stopped"
