"""What waits for a definition gets it, however much that is."""

from __future__ import annotations

import gc
import time

from web.chats.markdown.blocks import Block
from web.chats.markdown.ledger import Ledger

MANY = 4000


def waiting() -> Ledger:
    ledger = Ledger()
    source = "Some words, [a label] among them, and [another] that nobody defines. " * 5
    blocks = [Block(str(number), None, "paragraph", source) for number in range(MANY)]
    ledger.publish(blocks, [], {})
    while ledger.queued:
        ledger.take(1_000_000)
    return ledger


def test_all_blocks_that_wait_for_a_label_follow_its_definition() -> None:
    ledger = waiting()
    ledger.define({"A LABEL": ("http://x.y", "")})
    found = []
    while ledger.queued:
        found += ledger.take(10_000)
    assert [block.key for block in found] == [str(number) for number in range(MANY)]
    assert all(isinstance(each, Block) and len(each.references) == 1 for each in found)


def test_a_definition_and_each_step_after_it_do_a_small_part_of_the_work() -> None:
    ledger = waiting()
    steps = []
    # A collection walks all that the process holds, which is not what is measured.
    gc.disable()
    try:
        began = time.thread_time()
        ledger.define({"A LABEL": ("http://x.y", "")})
        steps.append(time.thread_time() - began)
        while ledger.queued:
            began = time.thread_time()
            ledger.take(50_000)
            steps.append(time.thread_time() - began)
    finally:
        gc.enable()
    assert len(steps) > 20
    assert max(steps) < sum(steps) / 4


def test_a_table_whose_header_is_defined_late_comes_with_its_rows() -> None:
    ledger = Ledger()
    table = Block("0", None, "table", "| [a] |\n|---|\n")
    rows = [Block(f"0-{number}", "0", "rows", "| x |\n") for number in range(3)]
    ledger.publish([], [table], {})
    ledger.publish(rows, [table], {})
    ledger.publish([table], [], {})
    while ledger.queued:
        ledger.take(1000)
    ledger.define({"A": ("http://x.y", "")})
    found = ledger.take(1000)
    assert [block.key for block in found] == ["0", "0-0", "0-1", "0-2"]


def keys(ledger: Ledger) -> list[str]:
    found = []
    while ledger.queued:
        found += ledger.take(1000)
    return [change.key for change in found if isinstance(change, Block)]


def test_a_closed_block_goes_by_final_definitions_only() -> None:
    ledger = Ledger()
    ledger.publish([Block("0", None, "paragraph", "[a]")], [], {"A": ("http://open.part", "")})
    (block,) = ledger.take(1000)
    assert isinstance(block, Block)
    assert block.references == ()
    ledger.define({"A": ("http://x.y", "")})
    (block,) = ledger.take(1000)
    assert isinstance(block, Block)
    assert block.references == (("A", "http://x.y", ""),)


def test_a_table_that_closes_with_its_rows_in_one_step_comes_with_them_later() -> None:
    ledger = Ledger()
    table = Block("0", None, "table", "| [a] |\n|---|\n")
    rows = [Block(f"0-{number}", "0", "rows", "| x |\n") for number in range(3)]
    ledger.publish([table, *rows], [], {})
    assert keys(ledger) == ["0", "0-0", "0-1", "0-2"]
    ledger.define({"A": ("http://x.y", "")})
    assert keys(ledger) == ["0", "0-0", "0-1", "0-2"]


def test_a_table_that_still_grows_comes_with_final_and_open_rows() -> None:
    ledger = Ledger()
    table = Block("0", None, "table", "| [a] |\n|---|\n")
    first, last = (Block(f"0-{number}", "0", "rows", "| x |\n") for number in range(2))
    ledger.publish([first], [table, last], {})
    assert keys(ledger) == ["0", "0-0", "0-1"]
    ledger.publish([], [table, last], {"A": ("http://x.y", "")})
    assert keys(ledger) == ["0", "0-0", "0-1"]
    ledger.publish([], [table, last], {})
    assert keys(ledger) == ["0", "0-0", "0-1"]
