"""The environment of processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.chromium import VARIABLE

CHECKOUT = Path(__file__).resolve().parents[2]


SURROUNDINGS = ("CI", "DISPLAY", "WAYLAND_DISPLAY")
"""What tells the server whether somebody sits before it."""


def is_ours(name: str) -> bool:
    """Whether an environment variable is one that harness-web reads as a setting."""
    if name == VARIABLE:
        return False
    return name in SURROUNDINGS or name.startswith(("HARNESS_WEB_", "OPENAI_", "ANTHROPIC_"))


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without settings, and with `more`; opens no window."""
    # The browser is for the tests alone: the server would say that it knows no such setting.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not is_ours(name) and name != VARIABLE and not name.startswith(("PYTHON", "COV_"))
    }
    return {**kept, "CI": "true", **more}
