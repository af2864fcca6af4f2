"""A snapshot that holds something of everything, and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from web.harness.snapshots.form import LONG
from web.harness.snapshots.snapshot import Snapshot
from web.harness.values.config import AgentConfig, Limits, ModelName
from web.harness.values.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from web.harness.values.sealed_form import digest_of
from web.harness.values.usage import Prices, Usage

SAMPLES = Path(__file__).parent / "samples"

CONVERSATION = (
    Message("r1-0", "user", (TextBlock("What is the total of 40 and 2? 猫"),)),
    Message("r1-1", "assistant", (ToolUseBlock("r1-1-0", "add", {"a": 40, "b": 2}),), "r1-0"),
    Message("r1-2", "tool", (ToolResultBlock("r1-1-0", (TextBlock("42"),)),), "r1-1"),
    Message("r1-3", "assistant", (TextBlock("42."),), "r1-2"),
)

FULL = Snapshot(
    "invoices-2026",
    AgentConfig(
        ModelName("anthropic", "claude-sonnet-4-6"),
        "You are an invoice assistant.",
        limits=Limits(max_iterations=12, prices=Prices(3.0, 15.0)),
        extra={"team": "invoices"},
    ),
    CONVERSATION,
    Usage(270, 29, 1, 2, 3),
    0.001245,
    {"anthropic:claude-sonnet-4-6": {"context_tokens": 150_000, "density": 1.25}},
    ("r1-0",),
    {"topic": ["invoices", 1.5, None]},
    {"plan": {"steps": ["add"]}, "empty": {}},
    1_764_480_000.25,
    1_764_480_060.5,
)


def sealed(form: dict[str, Any]) -> bytes:
    """The file of a form that somebody edited who knows how digests are made."""
    rest = {key: value for key, value in form.items() if key != "digest"}
    return json.dumps({**rest, "digest": digest_of(rest, LONG)}).encode()
