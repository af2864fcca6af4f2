"""What a server sends at once is limited before it is parsed, and what is kept of its lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import mcp_types as types
import pytest

from tests.support.mcp_wire import SECONDS, answering, raw, until
from web.harness.mcp.connections import Connections
from web.harness.mcp.listing import Listing, Page
from web.harness.mcp.sizes import (
    MAX_ENTRY_BYTES,
    MAX_LIST_BYTES,
    MAX_LIST_VALUES,
    MAX_SDK_VALUES,
    EventCount,
    Room,
    ValueCount,
)
from web.harness.mcp.tap import Tap
from web.harness.values.errors import ToolError

pytestmark = pytest.mark.anyio


def test_values_are_counted_outside_of_strings_however_the_text_is_cut() -> None:
    text = json.dumps({"a": [1, 2, ',[{\\"', {"b": "\\\\"}], '"': [[]]}).encode()
    for size in range(1, len(text) + 1):
        count = ValueCount()
        for start in range(0, len(text), size):
            count.add(text[start : start + size])
        assert count.values == 9, size


def test_each_event_of_a_stream_is_counted_by_itself() -> None:
    count = EventCount()
    assert count.add(b"data: [1,2]\n\ndata: [1,2,3]\r\n\r\n") == 3
    assert count.add(b"data: [1") == 1
    assert count.add(b",2]\n\n") == 2


def test_a_list_is_kept_as_far_as_there_is_room_over_all_its_pages() -> None:
    reports: list[str] = []
    room = Room()
    large = {"name": "x" * MAX_ENTRY_BYTES}
    small = {"name": "x" * (MAX_ENTRY_BYTES // 2)}

    def kept(entries: list[Any]) -> int:
        return len(room.kept(entries, "tool", lambda level, text: reports.append(text)))

    assert kept([large, small, large]) == 1
    assert reports == ["2 of the tool list were left out: over 256 KiB each."]
    fit = MAX_LIST_BYTES // (MAX_ENTRY_BYTES // 2 + 20)
    assert kept([small] * 2 * fit) == pytest.approx(fit, abs=1)
    assert kept([small]) == kept([{}]) == 0
    assert len(reports) == 2


def test_a_list_of_many_small_values_is_cut() -> None:
    entries = [{"name": "x", "arguments": [{}] * 98}] * MAX_LIST_VALUES
    assert len(Room().kept(entries, "prompt", lambda *_: None)) < MAX_LIST_VALUES / 98


@pytest.mark.parametrize(
    ("method", "key", "item"),
    [
        ("resources/read", "contents", {"uri": "x://1", "text": "t"}),
        ("tools/call", "content", {"type": "text", "text": "t"}),
    ],
)
def test_of_a_result_of_many_parts_the_first_are_read(
    method: str, key: str, item: dict[str, str]
) -> None:
    tap = Tap(lambda level, text: None)
    tap.sent(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method))
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={key: [item] * 50_000})
    tap.received(answer)
    assert len(answer.result[key]) == 1000
    assert answer.result[key][-1]["text"] == "[49,001 more parts of the result were left out.]"


async def test_a_list_of_too_many_values_is_refused_in_words(connections: Connections) -> None:
    connection = connections.connect(raw("manyvalues"))
    status = await until(connection, lambda status: status.state == "failed")
    assert "The answer is too large: it has more than 100,000 values." in status.cause
    assert status.retry_at is None


async def test_a_tool_that_is_too_large_costs_only_itself(connections: Connections) -> None:
    connection = connections.connect(raw("largetools"))
    status = await until(connection, lambda status: status.state == "ready")
    assert [tool.name for tool in status.tools] == ["echo"]
    assert "1 of the tool list were left out: over 256 KiB each." in [x.text for x in status.log]


async def test_an_answer_of_too_many_values_over_http_is_not_read(
    connections: Connections,
) -> None:
    body = '{"jsonrpc":"2.0","id":1,"result":{"x":[' + "[]," * MAX_SDK_VALUES + "1]}}"
    async with answering("200 OK", body, ["Content-Type: application/json"]) as spec:
        connection = connections.connect(spec)
        status = await until(connection, lambda status: status.state == "failed")
    assert "The answer is too large: it has more than 50,000 values." in status.cause


async def test_a_line_that_is_too_long_fails_its_own_call_at_once(
    connections: Connections,
) -> None:
    connection = connections.connect(raw(call_seconds=600))
    with anyio.fail_after(SECONDS), pytest.raises(ToolError, match="too large: 64 MiB"):
        await connection.call("long", {})


@pytest.mark.full
async def test_a_list_that_changes_all_the_time_is_read_ever_less_often() -> None:
    async def fetch(cursor: str | None) -> Page[str]:
        entries: Sequence[str] = ()
        return entries, None

    async def unchanged(entries: tuple[str, ...]) -> tuple[str, ...]:
        return entries

    listing = Listing("list", fetch)
    began = anyio.current_time()
    for least in (0, 0.25, 0.75, 1.75):
        listing.outdate()
        await listing.due()
        assert anyio.current_time() - began >= least
        await listing.read(print, unchanged)
        listing.settle()
    listing.outdate()
    with anyio.move_on_after(0.05):
        await listing.due()
    assert listing.settled.is_set(), "nobody waits for it any more"
