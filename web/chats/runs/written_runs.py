"""What people do with runs that are written down: their answers hold on every server, once each."""

from __future__ import annotations

from collections.abc import Sequence

from web.chats.chat import Chat
from web.chats.parts.kinds import Question
from web.chats.parts.listed_calls import all_calls
from web.chats.runs.durability import Durability
from web.chats.runs.supervisor import Supervisor, ended
from web.chats.runs.turns import Turns
from web.chats.transcript.asked import find_uncertain
from web.chats.transcript.inputs import find_input
from web.harness.agent.questions import check_decision, check_edited, once_only
from web.harness.sessions.answers import next_pause
from web.harness.sessions.journal import GivenAnswer, NumberedStep
from web.harness.tools.forms import check_content
from web.harness.tools.registry import ToolRegistry
from web.harness.values.errors import (
    DecisionRefused,
    HarnessError,
    SessionConflict,
    StoreError,
)
from web.harness.values.events import Decision, InputAction, Resolution
from web.harness.values.messages import JsonObject


class WrittenRuns:
    """The `RunControl` of a server with a backend."""

    def __init__(self, durable: Durability, turns: Turns, supervisor: Supervisor) -> None:
        self._durable = durable
        self._turns = turns
        self._supervisor = supervisor

    async def resume(self, chat: Chat, run_id: str) -> None:
        _check_begun(chat, run_id)
        await self._supervisor.resume(chat, run_id)

    async def leave(self, chat: Chat, run_id: str) -> None:
        _check_begun(chat, run_id)
        await self._supervisor.leave(chat, run_id)

    async def pause(self, chat: Chat, run_id: str) -> None:
        _check_begun(chat, run_id)
        executions = await self._durable.executions()
        execution = await executions.find(run_id)
        if execution is None and chat.turn is not None and chat.turn.run_id == run_id:
            raise _not_begun()
        if execution is None or execution.status == "ended":
            raise ended()
        if run_id in chat.transcript.halted:
            return
        given = await executions.answers(run_id)
        # At once: a call may have to end first, and telling Temporal may take a while.
        chat.transcript.stopping(run_id, pauses=True)
        try:
            await self._durable.tell(run_id, next_pause(given))
        except DecisionRefused:
            pass  # Somebody else has just said so, or it has ended.
        except StoreError:
            chat.transcript.go_on(run_id)
            raise

    async def resolve(
        self, chat: Chat, run_id: str, key: str, how: Resolution, text: str = ""
    ) -> None:
        if find_uncertain(chat.channel, key) is None:
            raise _not_open()
        await self._say(chat, run_id, GivenAnswer("resolution", key, {"how": how, "text": text}))

    async def steps(
        self, chat: Chat, run_id: str, after: int = 0, limit: int = 1_000
    ) -> Sequence[NumberedStep]:
        return await (await self._durable.executions()).steps(run_id, after, limit)

    async def decide(
        self,
        chat: Chat,
        key: str,
        decision: Decision,
        *,
        run_id: str | None = None,
        arguments: JsonObject | None = None,
        reason: str = "",
    ) -> None:
        """Answers a question, once on all servers. Raises DecisionRefused."""
        check_decision(decision)
        run = self._asking(chat, run_id)
        found = next((each for each in all_calls(chat.channel) if _asks(each.question, key)), None)
        if found is None or found.question is None:
            raise _not_open()
        if decision == "allow_chat" and found.question.always_asks:
            raise once_only(found.name)
        body: JsonObject = {"decision": decision}
        if reason:
            body["reason"] = reason
        if decision != "deny" and arguments is not None and arguments != found.arguments:
            body["arguments"] = check_edited(self._tools(chat), found.name, arguments)
        await self._say(chat, run, GivenAnswer("decision", key, body))

    async def answer_input(
        self,
        chat: Chat,
        key: str,
        action: InputAction,
        content: JsonObject | None = None,
        *,
        run_id: str | None = None,
    ) -> None:
        """The same of what a tool asks for. Raises DecisionRefused, a `FormRefused` where the
        content does not fit the form."""
        run, asked = self._asking(chat, run_id), find_input(chat.channel, key)
        if asked is None:
            raise _not_open()
        body: JsonObject = {"action": action}
        if action == "accept" and asked.address is None:
            body["content"] = content or {}
            check_content(asked.fields, body["content"])
        await self._say(chat, run, GivenAnswer("input", key, body))

    def _asking(self, chat: Chat, run_id: str | None) -> str:
        """The run that may ask something now."""
        turn = chat.turn or chat.elsewhere
        if turn is None or run_id not in (None, turn.run_id):
            raise DecisionRefused("The run that asked this has ended.", hint="Nothing was changed.")
        return turn.run_id

    async def _say(self, chat: Chat, run_id: str, answer: GivenAnswer) -> None:
        await self._durable.tell(run_id, answer)
        await self._supervisor.answered(chat, run_id)

    def _tools(self, chat: Chat) -> ToolRegistry:
        return chat.agent.tools if chat.agent is not None else self._turns.equipment.tools(chat)


def _check_begun(chat: Chat, run_id: str) -> None:
    if any(turn.run_id == run_id for turn in chat.queue):
        raise _not_begun()


def _not_begun() -> SessionConflict:
    return SessionConflict(
        "This message waits for its turn: nothing of it has begun.",
        hint="Take it back, or wait until it is at work.",
    )


def _asks(question: Question | None, key: str) -> bool:
    return question is not None and question.key == key


def _not_open() -> HarnessError:
    return DecisionRefused(
        "This was answered already, or is not open any more.", hint="Nothing was changed."
    )
