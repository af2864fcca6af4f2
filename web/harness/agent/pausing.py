"""A run that stands still on purpose."""

from __future__ import annotations

from web.harness.values.errors import HarnessError


class RunPaused(HarnessError):
    """A run was paused: all of it is written down, and it goes on when somebody resumes it."""

    code = "run_paused"
    hint = "Resume it to go on."

    def __init__(self) -> None:
        super().__init__("The run was paused.")


def unwritten() -> RuntimeError:
    """Nothing could go on with such a run."""
    return RuntimeError("A run without a journal cannot be paused.")
