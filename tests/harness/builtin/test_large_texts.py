"""Questions about large texts: made beside the event loop, in a time that grows with the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from tests.support.loop_share import loop_share
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.diffs import change_preview
from web.harness.builtin.files import file_tools
from web.harness.builtin.texts import replaced
from web.harness.tools.previews import Block, Row, in_short, rows_of
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import ToolContext
from web.harness.values.errors import ToolError

LINES = "\n".join(str(number) for number in range(550_000))


def seconds(work: Callable[[], object]) -> float:
    """Of CPU, at best of three."""

    def once() -> float:
        before = time.thread_time()
        work()
        return time.thread_time() - before

    return min(once() for _ in range(3))


def refused(text: str, old: str) -> str:
    with pytest.raises(ToolError) as caught:
        replaced("f", text, old, "new", every=False)
    return caught.value.message


def test_a_text_that_is_not_there_costs_no_square_of_the_lines_that_are_like_it() -> None:
    few, many = ("a\n" * lines for lines in (10_000, 80_000))
    assert "first line is at lines 1, 2" in refused(many, "a\nzzz")
    cost = seconds(lambda: refused(few, "a\nzzz"))
    assert seconds(lambda: refused(many, "a\nzzz")) < 25 * cost


def test_lines_alike_are_found_where_they_are_and_named_up_to_a_limit() -> None:
    assert "at line 3: give" in refused("a\n\n a  b\nc", "a b")
    assert "at lines 1, 2, 3" in refused("x\n x\nx \nx\n" * 9, "x\t\n x")
    assert "10 and more" in refused("a\n" * 50_000, " a ")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"old": "549999", "new": "x"}),
        ("edit_file", {"old": "1\nq", "new": "x"}),
        ("write_file", {"content": "9\n" * 200_000, "replace": True}),
        ("delete_file", {}),
    ],
)
async def test_a_question_about_a_large_text_keeps_nobody_waiting(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    (tmp_path / "log.txt").write_text(LINES)
    registry = ToolRegistry(file_tools(ChatFiles(tmp_path)))
    wanted = registry.get(tool)
    assert wanted is not None
    assert wanted.preview is not None
    given = registry.validate(tool, {"path": "log.txt", **arguments})
    async with loop_share() as share:
        # One of the texts to replace is not there.
        with suppress(ToolError):
            await wanted.preview(given, ToolContext("call"))
    assert share.in_loop < 0.05 or share.of_all < 0.3


def test_the_first_rows_of_a_large_preview_cost_no_more_than_those_of_a_small_one() -> None:
    some = LINES[: 2**18]
    block = Block("cut", some)
    first = seconds(lambda: list(islice(rows_of(block), 100)))
    assert first < seconds(lambda: sum(1 for _ in rows_of(block))) / 20
    short = seconds(lambda: in_short({"kind": "diff", "lines": [["cut", some]]}))
    assert short < seconds(lambda: sum(1 for _ in rows_of(block))) / 4


def test_blank_lines_are_counted_however_many_they_are() -> None:
    text = "a\n" + "\n" * 300_000 + " \t\r\n" * 100_000 + "b"
    gap = Row("gap", "400,000 blank lines are added", 400_000)
    assert list(rows_of(Block("add", text))) == [Row("add", "a"), gap, Row("add", "b")]


def test_a_change_within_a_large_text_shows_what_is_around_it() -> None:
    preview = change_preview("f", LINES, LINES.replace("\n300000\n", "\nx\n"))
    assert preview["lines"] == [
        ["gap", "299,997 unchanged lines"],
        ["same", "299997\n299998\n299999\n"],
        ["cut", "300000\n"],
        ["add", "x\n"],
        ["same", "300001\n300002\n300003\n"],
        ["gap", "249,996 unchanged lines"],
    ]


@pytest.mark.full
def test_lines_that_each_stand_alone_are_compared_only_so_long() -> None:
    lines = LINES.splitlines(keepends=True)[:4_000]
    before = "".join(lines)
    spread = "".join(f"{line}x{line}" for line in lines[:2_400]) + "end\n"
    preview = change_preview("f", before, spread)
    assert [kind for kind, _ in preview["lines"]] == ["same", "cut", "add"]
    few = change_preview(
        "f", "".join(lines[:500]), "".join(f"{line}x{line}" for line in lines[:500])
    )
    assert [kind for kind, _ in few["lines"][:4]] == ["same", "add", "same", "add"]
    # Small changes in many places are compared as ever.
    changed = [f"x{line}" if number % 40 == 0 else line for number, line in enumerate(lines)]
    preview = change_preview("f", before, "".join(changed))
    assert preview["note"] == "The file exists. 100 lines taken out, 100 put in."
