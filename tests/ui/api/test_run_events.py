"""The event stream of a run over a real connection: cursors, resuming, joining, gaps, limits."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.app_server import (
    WAIT_SECONDS,
    AppServer,
    StreamEvent,
    app_server,
    served,
    text_of,
)
from tests.support.scripted_provider import ScriptedProvider, Step, calls, says, thinks
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.values.events import Event, RunResult, TextDelta, ToolCallStart
from web.harness.values.model import ModelDone, TextChunk
from web.ui.access.open_streams import OpenStreams
from web.ui.api.run_events import MAX_DEPTH, format_event, run_events, to_json
from web.ui.stream.event_stream import EventStream

pytestmark = pytest.mark.anyio

WORDS = [f"word{number} " for number in range(40)]


async def test_numbers_run_from_one_without_a_gap_while_the_reader_keeps_up(tmp_path: Path) -> None:
    gates = [asyncio.Event() for _ in WORDS]
    steps: list[Step] = []
    for gate, word in zip(gates, WORDS, strict=True):
        steps += [gate, TextChunk(word)]
    provider = ScriptedProvider([*steps, ModelDone("end_turn")])
    async with app_server(tmp_path, provider) as server:
        run_id = await server.send(await server.new_chat(), "go")
        read: list[StreamEvent] = []
        async with asyncio.timeout(WAIT_SECONDS), server.stream(run_id) as events:
            for gate in gates:
                gate.set()
                read.append(await anext(events))
            read += [event async for event in events]
    assert [event.id for event in read] == list(range(1, len(read) + 1))
    assert [event.data["text"] for event in read[: len(WORDS)]] == WORDS
    assert [event.type for event in read[len(WORDS) :]] == ["usage", "run_result"]
    assert read[-1].data["status"] == "completed"
    assert read[-1].data["text"] == "".join(WORDS)


async def test_every_cursor_gives_exactly_the_rest_while_the_run_goes_on(tmp_path: Path) -> None:
    gate = asyncio.Event()
    steps: list[Step] = [*map(TextChunk, WORDS), gate, ModelDone("end_turn")]
    async with app_server(tmp_path, ScriptedProvider(steps)) as server:
        run_id = await server.send(await server.new_chat(), "go")
        for after in (0, 1, 7, len(WORDS) - 1):
            async with asyncio.timeout(WAIT_SECONDS), server.stream(run_id, after) as events:
                read = [await anext(events) for _ in range(len(WORDS) - after)]
            assert [event.id for event in read] == list(range(after + 1, len(WORDS) + 1))
            assert text_of(read) == "".join(WORDS[after:])
        gate.set()
        assert (await server.events(run_id, len(WORDS)))[-1].type == "run_result"


async def test_every_cursor_gives_exactly_the_rest_after_the_run_was_joined(tmp_path: Path) -> None:
    thought = thinks("Let me see.", "Once ")
    steps = [*thought[:-1], *map(TextChunk, WORDS), ModelDone("end_turn")]
    async with app_server(tmp_path, ScriptedProvider(steps)) as server:
        run_id = await server.send(await server.new_chat(), "go")
        await server.wait_for(run_id, "run_result")
        async with asyncio.timeout(WAIT_SECONDS):
            # The deltas are joined soon after the end, in a thread.
            while len(whole := await server.events(run_id)) > 4:
                pass
        assert [event.type for event in whole] == [
            "thinking_delta",
            "text_delta",
            "usage",
            "run_result",
        ]
        pieces = ["Once ", *WORDS]
        assert [event.id for event in whole] == [
            1,
            1 + len(pieces),
            2 + len(pieces),
            3 + len(pieces),
        ]
        assert text_of(whole) == "".join(pieces)
        for after in range(1, len(pieces) + 1):
            read = await server.events(run_id, after)
            assert text_of(read) == "".join(pieces[after - 1 :])
            assert [event.id for event in read] == [
                event.id for event in whole if event.id is not None and event.id > after
            ]


async def test_last_event_id_wins_over_the_address(tmp_path: Path) -> None:
    async with app_server(tmp_path, ScriptedProvider(says(*WORDS))) as server:
        run_id = await server.send(await server.new_chat(), "go")
        await server.wait_for(run_id, "run_result")
        headers = {"Last-Event-ID": str(len(WORDS) - 1)}
        async with server.stream(run_id, 0, headers) as events:
            read = [event async for event in events]
        assert text_of(read) == WORDS[-1]


async def test_a_connection_cut_anywhere_and_resumed_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    steps: list[Step] = [*map(TextChunk, WORDS), gate, TextChunk("end"), ModelDone("end_turn")]
    async with app_server(tmp_path, ScriptedProvider(steps)) as server:
        run_id = await server.send(await server.new_chat(), "go")
        read: list[StreamEvent] = []
        for cut in (3, 4, 17, 38):
            after = len(read)
            async with asyncio.timeout(WAIT_SECONDS), server.stream(run_id, after) as events:
                read += [await anext(events) for _ in range(cut - after)]
        gate.set()
        await server.wait_for(run_id, "run_result")
        read += await server.events(run_id, len(read))
    assert text_of(read) == "".join(WORDS) + "end"


async def test_a_slow_reader_gets_all_of_it_in_order() -> None:
    # More than a connection buffers, and without a page that would have to show it.
    pieces = [f"{number:06}" * 2_000 for number in range(400)]
    log, streams = InMemoryEventLog(lambda: 0.0), OpenStreams(1)

    async def events(request: Request) -> Response:
        return EventStream(run_events(log, request.path_params["run_id"], 0, streams), sep="\n")

    app = Starlette(routes=[Route("/api/runs/{run_id}/events", events)])
    async with served(app) as address, httpx.AsyncClient(base_url=address) as client:
        server = AppServer(address, client)
        async with asyncio.timeout(WAIT_SECONDS), server.stream("r") as slow:
            for piece in pieces[:200]:
                log.append("r", [TextDelta(piece, "m")])
            read = [await anext(slow)]
            for piece in pieces[200:]:
                log.append("r", [TextDelta(piece, "m")])
            log.append("r", [RunResult("completed", "")])
            read += [event async for event in slow]
    assert text_of(read) == "".join(pieces)
    numbers = [event.id or 0 for event in read]
    assert all(earlier < later for earlier, later in itertools.pairwise(numbers))


async def test_a_cursor_beyond_the_end_of_an_ended_run_ends_the_stream(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        run_id = await server.send(await server.new_chat(), "go")
        last = await server.wait_for(run_id, "run_result")
        assert await server.events(run_id, last.id or 0) == []
        assert await server.events(run_id, 10**15 - 1) == []


async def test_what_is_no_cursor_is_refused(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        run_id = await server.send(await server.new_chat(), "go")
        path = f"/api/runs/{run_id}/events"
        for cursor in ("-1", "1.5", "x", "1e3", "\u0663", "1_000", "9" * 16, "+1", "0x1"):
            by_address = await server.client.get(path, params={"after": cursor})
            by_header = await server.client.get(path, headers=[(b"Last-Event-ID", cursor.encode())])
            for answer in (by_address, by_header):
                assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor"), cursor


async def test_an_unknown_run_is_not_found(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        answer = await server.client.get("/api/runs/nope/events")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_stream_of_a_queued_run_waits_for_it_to_start(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([gate, *says("first")], says("second"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        await server.send(chat, "one")
        waiting = await server.send(chat, "two", queue=True)
        async with asyncio.timeout(WAIT_SECONDS), server.stream(waiting) as events:
            gate.set()
            assert text_of([event async for event in events]) == "second"


async def test_the_stream_of_a_message_that_is_taken_back_ends(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with app_server(tmp_path, ScriptedProvider([gate, *says("x")])) as server:
        chat = await server.new_chat()
        await server.send(chat, "one")
        waiting = await server.send(chat, "two", queue=True)
        async with asyncio.timeout(WAIT_SECONDS), server.stream(waiting) as events:
            await server.client.post(f"/api/runs/{waiting}/stop")
            read = [event async for event in events]
        assert [(event.type, event.data["reason"]) for event in read] == [
            ("run_result", "taken_back")
        ]
        assert (await server.chat(chat))["queue"] == []
        gate.set()


async def test_a_reader_of_a_folded_run_is_told_of_the_gap(tmp_path: Path) -> None:
    listing = calls(("list_files", {}))
    provider = ScriptedProvider(listing, says("a", "b", "c"), says("a", "b", "c"))
    async with app_server(tmp_path, provider, kept_runs=1) as server:
        chat = await server.new_chat()
        first = await server.send(chat, "one")
        last = await server.wait_for(first, "run_result")
        second = await server.send(chat, "two")
        await server.wait_for(second, "run_result")
        await settled(server, chat)
        async with asyncio.timeout(WAIT_SECONDS):
            # An old run is folded after the chat may be used again.
            while (await server.events(first))[0].type != "gap":
                pass
        events = await server.events(first)
        assert events[0].data == {"after": 0, "next": events[1].id}
        kinds = ["usage", "tool_call_start", "tool_result", "text_delta", "usage", "run_result"]
        assert [event.type for event in events[1:]] == kinds
        assert await server.events(first, (last.id or 0) - 1) == [last]
        assert text_of(await server.events(second)) == "abc"


async def test_a_reader_of_a_run_whose_chat_is_deleted_gets_its_end(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with app_server(tmp_path, ScriptedProvider([TextChunk("a"), gate])) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "go")
        async with asyncio.timeout(WAIT_SECONDS), server.stream(run_id) as events:
            await anext(events)
            assert (await server.client.delete(f"/api/chats/{chat}")).status_code == 204
            rest = [event async for event in events]
        assert (rest[-1].type, rest[-1].data["status"]) == ("run_result", "cancelled")
        assert (await server.client.get(f"/api/runs/{run_id}/events")).status_code == 404


async def test_one_stream_too_many_is_refused_until_another_has_ended(tmp_path: Path) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextChunk("a"), gate, ModelDone("end_turn")])
    async with app_server(tmp_path, provider, max_open_streams=2) as server:
        run_id = await server.send(await server.new_chat(), "go")
        path = f"/api/runs/{run_id}/events"
        async with server.stream(run_id) as first, server.stream(run_id) as second:
            await anext(first)
            await anext(second)
            refused = await server.client.get(path)
            assert refused.status_code == 503
            assert refused.json()["code"] == "too_many_streams"
            assert "2" in refused.json()["message"]
            assert int(refused.headers["Retry-After"]) > 0
        gate.set()
        async with asyncio.timeout(WAIT_SECONDS):
            while (await server.client.get(path)).status_code == 503:
                continue


async def test_the_stream_is_what_a_browser_and_a_proxy_expect(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        run_id = await server.send(await server.new_chat(), "go")
        path = f"/api/runs/{run_id}/events"
        answer = await server.client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in answer.headers
        head = await server.client.head(path)
        assert (head.status_code, head.content) == (200, b"")


async def test_tool_events_carry_all_that_is_known(tmp_path: Path) -> None:
    provider = ScriptedProvider(calls(("calculate", {"expression": "6*7"})), says("42"))
    async with app_server(tmp_path, provider) as server:
        run_id = await server.send(await server.new_chat(), "go")
        events = await server.events(run_id)
    by_type = {event.type: event.data for event in events}
    assert by_type["tool_call_start"]["arguments"] == {"expression": "6*7"}
    assert by_type["tool_result"]["text"] == "42"
    assert by_type["tool_result"]["call_id"] == by_type["tool_call_start"]["call_id"]
    assert by_type["run_result"]["iterations"] == 2


@pytest.mark.parametrize(
    "text",
    ["", "plain", 'quo"te \\ back', "line\nline\r\n\r", "é 漢 🙂", "\ud800", "\u2028\x00\x7f"],
)
def test_any_text_is_one_line_of_json(text: str) -> None:
    data = format_event(Event(3, 0.0, TextDelta(text, "m-1"))).decode()
    head, type_line, line, *end = data.split("\n")
    assert (head, type_line, end) == ("id: 3", "event: text_delta", ["", ""])
    assert json.loads(line.removeprefix("data: ")) == {"text": text, "message_id": "m-1"}


def test_numbers_and_depths_that_json_cannot_say_become_null() -> None:
    assert json.loads(to_json({"a": [math.inf, math.nan, 1.5], "b": {1: -math.inf}})) == {
        "a": [None, None, 1.5],
        "b": {"1": None},
    }
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    event = Event(1, 0.0, ToolCallStart("c", "tool", {"deep": deep}, "m"))
    line = format_event(event).decode().split("data: ")[1]
    assert line.count("[") <= MAX_DEPTH


async def settled(server: AppServer, chat: str) -> None:
    """Returns when the chat has nothing to do any more."""
    async with asyncio.timeout(WAIT_SECONDS):
        while (await server.chat(chat))["active_run"] is not None:
            continue
