"""Pages of a large question: cut once, and no page costs what all of them do."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, strategies as st

from web.chats.parts.kinds import Call
from web.chats.transcript.asked import Asked
from web.harness.values.events import ApprovalRequired
from web.harness.values.messages import JsonObject
from web.ui.pages.approval_pages import PAGE_LINES, PLANS_KEPT, WholePage, whole_page
from web.ui.rendering.unseen import hides


def asked(text: str, **arguments: object) -> Asked:
    preview: JsonObject = {"kind": "text", "text": text}
    question = ApprovalRequired("key", "call", "tool", arguments, "message", preview)
    call = cast("Call", SimpleNamespace(edited=False, arguments=arguments))
    return Asked(question, call, "open", True)


def text_of(page: WholePage) -> str:
    return "".join(block.text for section in page.sections for block in section.blocks)


def test_all_pages_together_are_all_of_it() -> None:
    text = "".join(f"{number}\n" * (number % 3) + "\n" for number in range(5_000))
    question = asked(text)
    pages = [whole_page(question, number) for number in range(1, whole_page(question, 1).pages + 1)]
    assert len(pages) > 2
    assert "".join(map(text_of, pages)) == text + "None"
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    assert all(text_of(page).count("\n") <= PAGE_LINES for page in pages)
    assert whole_page(question, 99).number == len(pages)


def test_a_page_after_the_first_costs_little_of_what_all_of_them_cost() -> None:
    question = asked("x = 1\n" * 500_000)
    begun = time.thread_time()
    pages = whole_page(question, 1).pages
    first = time.thread_time() - begun
    begun = time.thread_time()
    assert whole_page(question, pages // 2).number == pages // 2
    assert time.thread_time() - begun < first / 10


def test_a_question_whose_arguments_were_changed_is_cut_anew() -> None:
    question = asked("text", a="one")
    assert "one" in text_of(whole_page(question, 1))
    call = cast("Call", SimpleNamespace(edited=True, arguments={"a": "two"}))
    assert "two" in text_of(whole_page(replace(question, call=call), 1))
    for number in range(PLANS_KEPT + 1):
        assert str(number) in text_of(whole_page(asked("text", a=number), 1))


@pytest.mark.full
@given(st.text(st.sampled_from("ab .\n\r\u0301\u202e\ufe0f\u2764\u3164é漢"), max_size=30))
def test_what_hides_is_found_wherever_a_long_text_is_cut(end: str) -> None:
    usual = "Some words, and more.\r\n\u2764\ufe0f ok\n" * 3_000
    assert not hides(usual)
    assert hides(usual + end) == hides("ok\n" + end)
    assert hides(usual[:40_000] + "\u202e" + usual)
