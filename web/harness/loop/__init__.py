"""The loop: a pure state machine that decides what a run does next and touches nothing."""
