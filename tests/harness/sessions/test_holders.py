"""What is known of the holders of leases takes no more and more room."""

from __future__ import annotations

from web.harness.sessions.sql.holders import give_up, has_given_up, new_holder


def test_of_holders_that_let_go_the_newest_are_known() -> None:
    first, *others = (new_holder() for _ in range(1_001))
    for holder in (first, *others):
        give_up(holder)
    assert all(map(has_given_up, others))
    assert not has_given_up(first)
