"""Turns: what is sent runs once, waits its turn, can be stopped and tried again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.harness.agent.agents import tools
from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.scripted_provider import ScriptedProvider, breaks, calls, says
from web.chats.chat import Chat, Turn
from web.chats.parts.kinds import Call, Failure, Grant, Queued, Row, UserMessage
from web.chats.runs.driver import GRANTS, Driver
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.tools.registry import ToolRegistry
from web.harness.values.errors import (
    DecisionRefused,
    HarnessError,
    LimitExceeded,
    NotFound,
    SessionConflict,
)
from web.harness.values.events import ApprovalRequired, TextDelta
from web.harness.values.model import TextChunk

pytestmark = pytest.mark.anyio


def asking_tools() -> ToolRegistry:
    registry = ToolRegistry()

    @registry.register
    def save(text: str) -> str:
        return f"saved {text}"

    return registry


async def test_a_message_is_answered_and_the_conversation_committed() -> None:
    async with chat_room(ScriptedProvider(says("Hi"))) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        result = await room.result(turn.run_id)
        assert (result.status, result.text) == ("completed", "Hi")
        assert [message.text for message in chat.messages] == ["hello", "Hi"]
        async with await room.sessions.acquire(LOCAL_IDENTITY, chat.id) as lease:
            snapshot = await lease.read()
        assert snapshot.history == tuple(chat.messages)
        assert snapshot.replayable


async def test_the_next_turn_knows_the_last_one() -> None:
    async with chat_room(ScriptedProvider(says("one"), says("two"))) as room:
        chat = await room.new_chat()
        await room.result((await room.say(chat, "first")).run_id)
        await room.result((await room.say(chat, "second")).run_id)
        sent = room.provider.requests[1].messages
        assert [message.text for message in sent] == ["first", "one", "second"]


async def test_the_same_request_id_starts_one_run() -> None:
    async with chat_room(ScriptedProvider(says("Hi"))) as room:
        chat = await room.new_chat()
        first = await room.say(chat, request_id="r")
        again = await room.say(chat, request_id="r")
        await room.result(first.run_id)
        later = await room.say(chat, request_id="r")
        assert first == again == later
        assert len(room.provider.requests) == 1
        with pytest.raises(HarnessError) as caught:
            await room.say(chat, "other", request_id="r")
        assert caught.value.code == "request_id_reused"


async def test_a_busy_chat_refuses_or_queues_and_a_queued_message_follows() -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider([TextChunk("a"), go_on, *says("b")], says("second"))
    async with chat_room(provider) as room:
        chat = await room.new_chat()
        first = await room.say(chat, "first")
        with pytest.raises(SessionConflict):
            await room.chats.send(chat, "refused", queue=False)
        second = await room.say(chat, "second")
        assert log_of(chat, "queue") == [Queued(second.run_id, "second")]
        go_on.set()
        await room.result(first.run_id)
        assert (await room.result(second.run_id)).text == "second"
        assert log_of(chat, "queue") == []
        assert [message.text for message in chat.messages] == ["first", "ab", "second", "second"]


async def test_a_queued_message_says_what_it_waits_for() -> None:
    provider = ScriptedProvider(calls(("save", {"text": "x"})), says("saved"), says("second"))
    async with chat_room(provider, asking_tools()) as room:
        chat = await room.new_chat()
        first = await room.say(chat, "first")
        second = await room.say(chat, "second")

        def waits() -> Queued:
            (shown,) = log_of(chat, "queue")
            assert isinstance(shown, Queued)
            return shown

        assert waits() == Queued(second.run_id, "second")
        asked = await room.event(first.run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(asked, ApprovalRequired)
        assert waits().behind == "asking"
        await room.chats.decide(chat, asked.key, "allow")
        assert (await room.result(second.run_id)).text == "second"
        chat.enqueue(second)
        chat.transcript.begin("r", "third", 1.0, "demo:demo")
        assert waits().behind == "working"
        chat.transcript.halt("r", "paused")
        assert waits().behind == "halted"
        chat.transcript.go_on("r")
        assert waits().behind == "working"


async def test_a_queued_message_can_be_taken_back() -> None:
    go_on = asyncio.Event()
    async with chat_room(ScriptedProvider([go_on, *says("b")])) as room:
        chat = await room.new_chat()
        first = await room.say(chat, "first")
        second = await room.say(chat, "second")
        assert await room.chats.take_back(chat, second.run_id) == "second"
        assert (await room.result(second.run_id)).reason == "taken_back"
        with pytest.raises(NotFound):
            await room.chats.take_back(chat, second.run_id)
        go_on.set()
        await room.result(first.run_id)
        assert len(room.provider.requests) == 1


async def test_limits_refuse_with_words_and_change_nothing() -> None:
    go_on = asyncio.Event()
    async with chat_room(
        ScriptedProvider([go_on, *says("b")]), max_queued=1, max_running=1, max_message_chars=50
    ) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        with pytest.raises(LimitExceeded, match="at most 50"):
            await room.say(chat, "x" * 51)
        with pytest.raises(HarnessError, match="empty"):
            await room.say(chat, " \n ")
        first = await room.say(chat)
        await room.say(chat, "waits")
        with pytest.raises(LimitExceeded, match="queue of this chat is full; its limit is 1"):
            await room.say(chat, "one too many")
        with pytest.raises(LimitExceeded, match="limit"):
            await room.say(other)
        assert log_of(other) == []
        go_on.set()
        await room.result(first.run_id)


async def test_stopping_keeps_what_was_written_as_not_replayable() -> None:
    async with chat_room(ScriptedProvider([TextChunk("so far"), asyncio.Event()])) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        await room.event(turn.run_id, lambda body: isinstance(body, TextDelta))
        room.chats.stop(chat, turn.run_id)
        assert (await room.result(turn.run_id)).status == "cancelled"
        assert chat.messages[-1].text == "so far"
        async with await room.sessions.acquire(LOCAL_IDENTITY, chat.id) as lease:
            assert not (await lease.read()).replayable
        room.chats.stop(chat, turn.run_id)


async def test_a_turn_that_is_stopped_before_it_began_ends_too() -> None:
    async with chat_room(ScriptedProvider(says("never"))) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        room.chats.stop(chat, turn.run_id)
        assert (await room.result(turn.run_id)).status == "cancelled"
        assert room.provider.requests == []
        assert chat.state == "idle"


async def test_a_failed_turn_is_tried_again_in_its_own_place() -> None:
    broken = breaks("half", transient=False, code="provider_auth")
    async with chat_room(ScriptedProvider(says("one"), broken, says("right"))) as room:
        chat = await room.new_chat()
        await room.result((await room.say(chat, "first")).run_id)
        failed = await room.say(chat, "second")
        await room.result(failed.run_id)
        assert any(isinstance(data, Failure) for data in log_of(chat))
        assert chat.state == "failed"
        again = await room.chats.retry(chat, failed.run_id)
        assert (await room.result(again.run_id)).text == "right"
        assert [message.text for message in chat.messages] == ["first", "one", "second", "right"]
        said = [data.text for data in log_of(chat) if isinstance(data, UserMessage)]
        assert said == ["first", "second"]
        assert not any(isinstance(data, Failure) for data in log_of(chat))
        assert await room.chats.retry(chat, failed.run_id) is again
        with pytest.raises(NotFound):
            await room.chats.retry(chat, again.run_id)


async def test_a_double_click_on_try_again_starts_one_run() -> None:
    broken = breaks(transient=False)
    go_on = asyncio.Event()
    async with chat_room(ScriptedProvider(broken, [go_on, *says("x")])) as room:
        chat = await room.new_chat()
        failed = await room.say(chat)
        await room.result(failed.run_id)
        again = await room.chats.retry(chat, failed.run_id)
        assert await room.chats.retry(chat, failed.run_id) is again
        with pytest.raises(SessionConflict):
            await room.chats.retry(chat, again.run_id)
        go_on.set()
        await room.result(again.run_id)


async def test_a_question_is_shown_answered_once_and_closed_with_its_run() -> None:
    provider = ScriptedProvider(calls(("save", {"text": "a"})), says("ok"))
    async with chat_room(provider, asking_tools()) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        question = await room.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(question, ApprovalRequired)
        assert chat.state == "asking"
        with pytest.raises(DecisionRefused):
            await room.chats.decide(chat, question.key, "allow", run_id="another")
        await room.chats.decide(chat, question.key, "allow")
        with pytest.raises(DecisionRefused):
            await room.chats.decide(chat, question.key, "deny")
        await room.result(turn.run_id)
        with pytest.raises(DecisionRefused, match="ended"):
            await room.chats.decide(chat, question.key, "allow")
        (call,) = [data for data in log_of(chat) if isinstance(data, Call)]
        assert (call.status, call.result, call.decision) == ("done", "saved a", "allow")
        assert call.question is None


async def test_a_grant_for_the_chat_holds_for_its_later_turns_and_no_other_chat() -> None:
    use = calls(("save", {"text": "a"}))
    async with chat_room(
        ScriptedProvider(use, says("1"), use, says("2"), use), asking_tools()
    ) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        turn = await room.say(chat)
        question = await room.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
        assert isinstance(question, ApprovalRequired)
        await room.chats.decide(chat, question.key, "allow_chat")
        await room.result(turn.run_id)
        second = await room.say(chat, "again")
        assert (await room.result(second.run_id)).text == "2"
        third = await room.say(other)
        await room.event(third.run_id, lambda body: isinstance(body, ApprovalRequired))


async def asked(room: ChatRoom, turn: Turn) -> ApprovalRequired:
    body = await room.event(turn.run_id, lambda body: isinstance(body, ApprovalRequired))
    assert isinstance(body, ApprovalRequired)
    return body


async def granted_in_session(room: ChatRoom, chat: Chat) -> object:
    async with await room.sessions.acquire(LOCAL_IDENTITY, chat.id) as lease:
        return (await lease.read()).state[GRANTS]


async def test_a_grant_is_shown_and_one_taken_back_between_turns_asks_again() -> None:
    use = calls(("save", {"text": "a"}))
    provider = ScriptedProvider(use, says("1"), use, says("2"))
    async with chat_room(provider, asking_tools()) as room:
        chat = await room.new_chat()
        room.chats.revoke(chat, "save")
        turn = await room.say(chat)
        question = await asked(room, turn)
        assert log_of(chat, "tool-save") == []
        await room.chats.decide(chat, question.key, "allow_chat")
        assert log_of(chat, "tool-save") == [Grant("save")]
        await room.result(turn.run_id)
        assert await granted_in_session(room, chat) == ["save"]
        room.chats.revoke(chat, "save")
        assert (chat.grants, log_of(chat, "tool-save")) == ([], [])
        second = await room.say(chat, "again")
        question = await asked(room, second)
        await room.chats.decide(chat, question.key, "allow")
        await room.result(second.run_id)
        assert await granted_in_session(room, chat) == []


async def test_a_grant_taken_back_during_a_run_holds_for_its_next_call() -> None:
    use, go_on = calls(("save", {"text": "a"})), asyncio.Event()
    provider = ScriptedProvider(use, [go_on, *use], says("done"))
    async with chat_room(provider, asking_tools()) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        first = await asked(room, turn)
        await room.chats.decide(chat, first.key, "allow_chat")
        room.chats.revoke(chat, "save")
        go_on.set()
        second = await room.event(
            turn.run_id, lambda body: isinstance(body, ApprovalRequired) and body.key != first.key
        )
        assert isinstance(second, ApprovalRequired)
        await room.chats.decide(chat, second.key, "allow")
        assert (await room.result(turn.run_id)).text == "done"


async def test_another_model_answers_from_the_next_message_on() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()
        await room.result((await room.say(chat)).run_id)
        await room.result((await room.say(chat, "again", model="openai:other")).run_id)
        assert room.models == ["demo:demo", "openai:other"]
        with pytest.raises(HarnessError, match="not offered"):
            await room.say(chat, "again", model="openai:unknown")


async def test_only_the_last_runs_keep_what_a_record_does_not_need() -> None:
    answers = [calls(("double", {"number": 1})), says("x")] * 4
    async with chat_room(ScriptedProvider(*answers), tools(), kept_runs=2) as room:
        chat = await room.new_chat()
        runs = [await room.say(chat, f"message {number}") for number in range(1)]
        for number in range(3):
            await room.result(runs[-1].run_id)
            runs.append(await room.say(chat, f"more {number}"))
        await room.result(runs[-1].run_id)
        await room.rest()
        gaps = [(await room.events.read(turn.run_id)).gap for turn in runs]
        assert gaps == [True, True, False, False]
        old = [event.type for event in await room.all_events(runs[0].run_id)]
        assert old == [
            "usage", "tool_call_start", "tool_result", "text_delta", "usage", "run_result"
        ]  # fmt: skip


async def test_a_provider_that_cannot_be_made_fails_the_run_with_its_words() -> None:
    async with chat_room(ScriptedProvider(says("x"))) as room:
        chat = await room.new_chat()

        def refuse(model: object) -> ScriptedProvider:
            raise HarnessError("No key.", hint="Set OPENAI_API_KEY.", code="configuration_error")

        room.turns._driver = Driver(replace(room.turns.equipment, provider=refuse))
        turn = await room.say(chat)
        assert (await room.result(turn.run_id)).reason == "configuration_error"
        (failure,) = [data for data in log_of(chat) if isinstance(data, Failure)]
        assert failure.hint == "Set OPENAI_API_KEY."


async def test_the_end_of_the_server_stops_runs_and_leaves_whole_conversations() -> None:
    async with chat_room(ScriptedProvider([TextChunk("so far"), asyncio.Event()])) as room:
        chat = await room.new_chat()
        turn = await room.say(chat)
        await room.event(turn.run_id, lambda body: isinstance(body, TextDelta))
    assert room.provider.open == 0
    assert [message.text for message in chat.history] == ["hello", "so far"]
    last = (await room.all_events(turn.run_id))[-1].body
    assert last.type == "run_result"


async def test_a_chat_in_which_messages_wait_is_at_work_whatever_became_of_the_last() -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(breaks(transient=False), [go_on, *says("b")])
    # One answer at a time, and another chat has it.
    async with chat_room(provider, max_running=1) as room:
        chat, other = await room.new_chat(), await room.new_chat()
        await room.result((await room.say(chat)).run_id)
        assert chat.state == "failed"
        run = await room.say(other)
        chat.enqueue(Turn("waits", "Hi", "demo:demo", "q"))
        assert (chat.state, chat.run_state) == ("working", "failed")
        room.chats.show(chat)
        assert row_state(room, chat) == "working"
        room.turns.stop(chat, "waits")
        assert chat.state == row_state(room, chat) == "failed"
        go_on.set()
        await room.result(run.run_id)


def row_state(room: ChatRoom, chat: Chat) -> str:
    """What the side bar says of a chat."""
    row = room.chats.side_bar(LOCAL_IDENTITY).get(f"r-{chat.id}")
    assert row is not None
    assert isinstance(row.data, Row)
    return row.data.state
