"""What a person answers while a run is under way: may a call run, and what a tool asks for."""

from __future__ import annotations

import logging
from abc import abstractmethod

from web.chats.chat import Chat
from web.chats.journal.journal import AnswerGiven, InputGiven, Request, StopAsked
from web.chats.parts.listed_calls import all_calls
from web.chats.records.chat_limits import check_reason
from web.chats.runs.turns import Turns
from web.chats.runs.written_runs import WrittenRuns
from web.chats.storage.other_servers import OtherServers
from web.chats.transcript.inputs import open_inputs
from web.harness.values.errors import DecisionRefused, HarnessError
from web.harness.values.events import Decision, InputAction
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)


class Answering(OtherServers):
    """The part of `Chats` that takes answers, also those given on a page of another server."""

    _turns: Turns

    @abstractmethod
    def stop(self, chat: Chat, run_id: str) -> None: ...

    def start(self) -> None:
        super().start()
        if self.kept is not None:
            self.kept.follower.requests = self._take_request

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
        """Answers a question of the run under way. Raises DecisionRefused."""
        check_reason(reason)
        if (written := self._written) is not None:
            await written.decide(
                chat, key, decision, run_id=run_id, arguments=arguments, reason=reason
            )
            return
        if self._asked_elsewhere(chat, key, run_id):
            run = chat.elsewhere.run_id if chat.elsewhere is not None else ""
            self._turns.journal.write(chat, AnswerGiven(run, key, decision, arguments, reason))
            return
        active = chat.turn.run_id if chat.turn is not None else None
        if chat.agent is None or (run_id is not None and run_id != active):
            raise DecisionRefused("The run that asked this has ended.", hint="Nothing was changed.")
        chat.agent.decide(key, decision, arguments=arguments, reason=reason)
        chat.show_grants()

    async def answer_input(
        self,
        chat: Chat,
        key: str,
        action: InputAction,
        content: JsonObject | None = None,
        *,
        run_id: str | None = None,
    ) -> None:
        """Answers what a tool of the run under way asks for.

        Raises DecisionRefused, a `FormRefused` where the content does not fit the form.
        """
        if (written := self._written) is not None:
            await written.answer_input(chat, key, action, content, run_id=run_id)
            return
        if self._asked_elsewhere(chat, key, run_id):
            run = chat.elsewhere.run_id if chat.elsewhere is not None else ""
            self._turns.journal.write(chat, InputGiven(run, key, action, content))
            return
        active = chat.turn.run_id if chat.turn is not None else None
        if chat.agent is None or (run_id is not None and run_id != active):
            raise DecisionRefused("The run that asked this has ended.", hint="Nothing was changed.")
        chat.agent.answer_input(key, action, content)

    async def cut_off(self) -> None:
        """Before the server ends: runs that are written down end here at once, as if it had been
        killed, and not one by one as what they need is taken from them."""
        await self._turns.cut_off()

    @property
    def _written(self) -> WrittenRuns | None:
        """The runs, where they are written down."""
        return self.kept.written if self.kept is not None else None

    def revoke(self, chat: Chat, tool: str) -> None:
        """Takes back that a tool runs unasked in this chat; the next call of it asks again."""
        chat.revoke(tool)
        self._keep_grants(chat)

    def _asked_elsewhere(self, chat: Chat, key: str, run_id: str | None) -> bool:
        """Whether a run of another server asks this, and waits for it."""
        running = chat.elsewhere.run_id if chat.elsewhere is not None else None
        if running is None or run_id not in (None, running):
            return False
        questions = (call.question for call in all_calls(chat.channel) if call.status == "asking")
        inputs = (asked.key for _, asked in open_inputs(chat.channel))
        return key in {each.key for each in questions if each is not None} | set(inputs)

    def _take_request(self, chat: Chat, request: Request) -> None:
        """Does what a person asked on a page of another server, if the run is ours."""
        if chat.turn is not None and chat.turn.run_id == request.run_id:
            self._tasks.create_task(self._do(chat, request))

    async def _do(self, chat: Chat, request: Request) -> None:
        try:
            match request:
                case StopAsked():
                    self.stop(chat, request.run_id)
                case AnswerGiven():
                    await self.decide(
                        chat,
                        request.key,
                        request.decision,
                        arguments=request.arguments,
                        reason=request.reason,
                    )
                case InputGiven():
                    await self.answer_input(chat, request.key, request.action, request.content)
        except HarnessError as error:
            log.info("What was asked on another server came too late: %s", error.message)
