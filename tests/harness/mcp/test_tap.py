"""Lines of a server are read as far as they can be."""

from __future__ import annotations

import json

import mcp_types as types
from mcp.shared.message import SessionMessage

from web.harness.mcp.status import plain
from web.harness.mcp.tap import Tap, parsed, without_flood


def message(line: bytes) -> types.JSONRPCMessage:
    found = parsed(line)
    assert found is not None
    return found[0].message


def test_a_byte_order_mark_and_bad_bytes_do_not_hide_an_answer() -> None:
    answer = message(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{"a":"\xff\xfe"}}\r')
    assert isinstance(answer, types.JSONRPCResponse)
    assert answer.result == {"a": "��"}


def test_half_a_character_is_replaced() -> None:
    answer = message(b'{"jsonrpc":"2.0","id":"x","result":{"a":"\\ud83d","b":"\\ud83d\\ude00"}}')
    assert isinstance(answer, types.JSONRPCResponse)
    assert answer.result == {"a": "�", "b": "😀"}


def test_an_answer_that_cannot_be_read_fails_its_own_request() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    answer = message(b'{"jsonrpc":"2.0","id":7,"result":{"content":' + deep + b"}}")
    assert isinstance(answer, types.JSONRPCError)
    assert (answer.id, answer.error.code) == (7, types.PARSE_ERROR)


def test_several_messages_in_one_line_are_several() -> None:
    ping = {"jsonrpc": "2.0", "method": "notifications/x"}
    found = parsed(json.dumps([ping, ping]).encode())
    assert found is not None
    assert len(found) == 2


def test_what_is_no_message_is_none() -> None:
    for line in (b"hello", b"42", b"{", b'{"id": 1}', b"", b'"text"'):
        assert not parsed(line)


def progress(token: str | int, done: int) -> SessionMessage:
    params = {"progressToken": token, "progress": done}
    note = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
    return SessionMessage(note)


def test_progress_that_is_overtaken_in_one_batch_is_left_out() -> None:
    other = SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
    one, two = progress(1, 1), progress(1, 2)
    three = progress("2", 1)
    assert without_flood([one, three, other, two]) == [three, other, two]


def test_an_output_schema_is_kept_from_the_sdk() -> None:
    reports: list[str] = []
    tap = Tap(lambda level, text: reports.append(text))
    tap.sent(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": [tool]})
    tap.received(answer)
    assert answer.result == {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    assert (tap.output_schemas, reports) == ({"t": {"type": "array"}}, [])


def test_a_result_without_content_is_an_empty_one() -> None:
    tap = Tap(lambda level, text: None)
    tap.sent(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call"))
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"structuredContent": {"a": 1}})
    tap.received(answer)
    assert answer.result == {"structuredContent": {"a": 1}, "content": []}


def test_a_line_is_shown_without_colours_titles_and_signs_that_cannot_be_seen() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\u202eback\u200b\r\n") == "red back"
    assert len(plain("x" * 100_000)) == 2000
