"""A streamed text ends up as the same HTML as the text rendered whole."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from tests.ui.markdown.corpus import ATOMS, TEXTS, WHITE, examples
from tests.ui.markdown.streamed import stream, stream_pieces
from web.chats.markdown import Limits
from web.ui.markdown import render

LIMITS = {
    "usual": Limits(),
    "cut": Limits(cut=40, piece=20, line=30),
    "cut plain": Limits(cut=40, piece=20, line=30, step=37, highlight=30, lines=3),
    "tiny": Limits(cut=16, piece=8, line=16, step=11, highlight=20, missing=6),
    "beyond": Limits(cut=80, piece=30, unit=100, depth=4, step=50, highlight=60),
}

mixtures = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=60).map("".join)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("text", TEXTS)
def test_each_construct_streams_to_what_it_is_whole(text: str, limits: Limits) -> None:
    whole = render(text, limits)
    for seed in range(4):
        assert stream(text, limits, Random(seed)).html() == whole


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
def test_the_examples_of_the_specification_stream_to_what_they_are_whole(limits: Limits) -> None:
    # A clone elsewhere has no examples of the specification: our own cover the same constructs.
    texts = examples() or TEXTS
    for number, text in enumerate(texts):
        assert stream(text, limits, Random(number)).html() == render(text, limits), text


@pytest.mark.parametrize("white", WHITE)
def test_white_space_that_makes_no_blank_line_may_come_alone(white: str) -> None:
    for before in ("", "Hi\n\n", "- a\n\n  ", "> ", "a" * 1021 + "\n\n", "[a]: /u\n"):
        for after in ("", "Hello [a]", "\n\nmore", "b" * 9000):
            pieces = [before, white, after]
            assert stream_pieces(pieces, Limits()).html() == render("".join(pieces), Limits())


TAKEN_BACK = [
    ["S", "ee [foo].\n# T\n[foo]:\nh", "ttp://e.vil/ more\n"],
    ["S", "ee [foo].\n\n- a [foo]\n- b\n\n  [foo]:\n  w", "ord is\n"],
    ["See [foo].\n\n", "[foo]:\nh", "ttp://e.vil/ more\n"],
    ["See [foo].\n\n[foo]: /u\n", "'title\n", "goes on' and is none\n\n[foo]: /w\n"],
    ["- a [foo]\n- b\n\n[foo]:\n", "x", " y\n\n[foo]: /w\n"],
    ["| [foo] |\n|---|\n| a |\n\n[foo]:\nx", " y\n\n| b |\n\n[foo]: /w"],
]


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("pieces", TAKEN_BACK)
def test_a_definition_that_turns_out_to_be_none_leaves_nothing(
    pieces: list[str], limits: Limits
) -> None:
    whole = render("".join(pieces), limits)
    assert stream_pieces(pieces, limits).html() == whole
    assert stream_pieces(list("".join(pieces)), limits).html() == whole


LATE_HEADERS = [
    "[bar]|\n--\nx\n\n[bar]: http://h.i",
    "| [a] |\n|---|\n| x |\n| [b] |\n\n[b]: /b\n\n[a]: /a\n\nmore\n",
    "| [a] |\n|---|\n" + "| [b] x |\n" * 300 + "\n[a]: /a\n[b]: /b\n",
]


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("text", LATE_HEADERS)
def test_a_table_whose_header_changes_keeps_its_rows(text: str, limits: Limits) -> None:
    whole = render(text, limits)
    for pieces in ([text], list(text), text.splitlines(keepends=True)):
        assert stream_pieces(pieces, limits).html() == whole


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixtures, st.sampled_from(list(LIMITS.values())), st.integers(0, 1000))
@example("- a\n\n- b", LIMITS["beyond"], 0)
@example("- [ ] - [ ] ", LIMITS["beyond"], 5)
@example(" + [a]: /u\n", LIMITS["tiny"], 32)
@example("* ab * * *\n", LIMITS["tiny"], 3)
@example("- a\nfoofoofoofoofoofoofoo- a\n\ufeff", LIMITS["beyond"], 0)
def test_any_mixture_streams_to_what_it_is_whole(text: str, limits: Limits, seed: int) -> None:
    assert stream(text, limits, Random(seed)).html() == render(text, limits)


@pytest.mark.full
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixtures, st.sampled_from(list(LIMITS.values())), st.integers(0, 1000))
def test_very_many_mixtures_stream_to_what_they_are_whole(
    text: str, limits: Limits, seed: int
) -> None:
    assert stream(text, limits, Random(seed)).html() == render(text, limits)
