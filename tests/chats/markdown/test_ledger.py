"""What waits for a definition gets it, however much that is."""

from __future__ import annotations

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
    began = time.thread_time()
    ledger.define({"A LABEL": ("http://x.y", "")})
    steps.append(time.thread_time() - began)
    while ledger.queued:
        began = time.thread_time()
        ledger.take(50_000)
        steps.append(time.thread_time() - began)
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
