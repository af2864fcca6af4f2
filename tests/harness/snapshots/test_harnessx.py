"""Snapshots that harnessx wrote load with all they hold."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.harness.snapshots.kept import SAMPLES
from tests.support.pictures import png
from web.harness.snapshots.form import read_snapshot, write_snapshot
from web.harness.values.config import ModelName
from web.harness.values.errors import SnapshotRefused
from web.harness.values.messages import ImageBlock, TextBlock, ThinkingBlock
from web.harness.values.usage import Prices, Usage

VERSIONS = ("0.3.0", "0.4.0")


def raw(version: str = "0.4.0") -> dict[str, Any]:
    made: dict[str, Any] = json.loads((SAMPLES / f"harnessx-{version}.json").read_bytes())
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_a_released_version_is_read_whole(version: str) -> None:
    snapshot = read_snapshot((SAMPLES / f"harnessx-{version}.json").read_bytes())
    assert snapshot.session_id == raw(version)["session_id"]
    assert [(m.id, m.role, m.parent_id, m.text) for m in snapshot.messages] == [
        ("turn1-0", "user", None, "Remember that this project analyzes invoices."),
        ("turn1-1", "assistant", "turn1-0", "Noted: this project analyzes invoices."),
        ("turn2-0", "user", "turn1-1", "What is the total of 40 and 2?"),
        ("turn2-1", "assistant", "turn2-0", ""),
        ("turn2-2", "tool", "turn2-1", ""),
        ("turn2-3", "assistant", "turn2-2", "The invoice total is 42."),
    ]
    [use] = snapshot.messages[3].tool_uses
    assert (use.id, use.name, use.arguments) == ("call_1", "add", {"a": 40, "b": 2})
    assert snapshot.usage == Usage(270, 29)
    config = snapshot.config
    assert config.model == ModelName("anthropic", "claude-sonnet-4-6")
    assert config.system_prompt == "You are an invoice assistant."
    assert (config.limits.max_iterations, config.limits.max_result_chars) == (12, 12_000)
    assert (config.retry.attempts, config.retry.backoff_seconds) == (3, 0.5)
    assert config.retry.call_timeout_seconds == 300.0
    assert config.extra["prompt_cache"]["cache_history"] is True
    assert snapshot.metadata == {"harnessx": {"lifetime_iterations": 3}}
    assert snapshot.created_at == pytest.approx(1_795_967_000, abs=100_000)


def test_the_cost_follows_from_the_prices_where_there_are_any() -> None:
    flat, nested = (
        read_snapshot((SAMPLES / f"harnessx-{version}.json").read_bytes()) for version in VERSIONS
    )
    assert flat.cost is None
    assert nested.config.limits.prices == Prices(3.0, 15.0)
    assert nested.cost == pytest.approx(0.001245)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_loaded_is_saved_in_our_own_form(version: str) -> None:
    snapshot = read_snapshot((SAMPLES / f"harnessx-{version}.json").read_bytes())
    assert read_snapshot(write_snapshot(snapshot)) == snapshot


def test_thinking_pictures_errors_and_results_out_of_order_are_read() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": ""}
    source["data"] = base64.b64encode(png(3, 4)).decode()
    image = {"type": "image", "source": source}
    call = {"type": "tool_use", "name": "look", "input": {}}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "x"}, image]}
    form = raw()
    form["messages"] = [
        {"role": "user", "content": [{"type": "text", "text": "Look."}, image]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "seal"},
                {"type": "redacted_thinking", "data": "sealed"},
                {**call, "id": "one", "cache_control": {"type": "ephemeral"}},
                {**call, "id": "two"},
            ],
        },
        {
            "role": "user",
            "content": [
                {**result, "tool_use_id": "two", "is_error": True},
                {"type": "tool_result", "tool_use_id": "one"},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]
    asked, thought, results, more = read_snapshot(json.dumps(form).encode()).messages
    assert isinstance(asked.content[1], ImageBlock)
    assert thought.content[:2] == (
        ThinkingBlock("Hm.", "seal"),
        ThinkingBlock("", "sealed", redacted=True),
    )
    first, second = results.content
    assert (first.call_id, second.call_id, second.is_error) == ("one", "two", True)  # type: ignore[union-attr]
    assert second.pictures[0].width == 3  # type: ignore[union-attr]
    assert (more.role, more.content) == ("user", (TextBlock("Go on."),))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 3}, "in form 3; this program reads form 2"),
        ({"version": 1}, "in form 1"),
        ({"session_id": "../x"}, "cannot be the id"),
        ({"messages": [{"role": "system", "content": "x"}]}, "no role"),
        ({"messages": [{"role": "user", "content": 5}]}, "a text or a list"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "not known here"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}
                ]
            },
            "results of other calls",
        ),
        ({"config": {"model": "x", "provider": "y", "colour": 1}}, "no field 'colour'"),
        ({"total_usage": {"input_tokens": "many"}}, "usage.input_tokens"),
        ({"extensions": {"a": []}}, "extensions.a is a list"),
        ({"created_at": None}, "created_at"),
    ],
)
def test_a_broken_snapshot_of_harnessx_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SnapshotRefused, match=said):
        read_snapshot(json.dumps({**raw(), **change}).encode())


def test_a_call_without_its_result_is_refused() -> None:
    form = raw()
    form["messages"] = form["messages"][:4]
    with pytest.raises(SnapshotRefused, match="ends with 1 calls that have no result"):
        read_snapshot(json.dumps(form).encode())
