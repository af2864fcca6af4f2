"""The tool calls of one run: proposed, asked about, started, settled, each with one result."""

from __future__ import annotations

import asyncio
import time
from copy import deepcopy
from dataclasses import replace
from functools import partial

from web.harness.agent.answer import Emit
from web.harness.agent.call import Call, denial, digest, edit_note
from web.harness.agent.control import Control
from web.harness.agent.inputs import Inputs
from web.harness.agent.nested import Nested, Surroundings
from web.harness.agent.progress import Progress
from web.harness.agent.proposals import Proposals
from web.harness.agent.questions import Answer, Questions, check_decision, once_only, unfit
from web.harness.agent.recoveries import Recoveries, result_of
from web.harness.agent.totals import Totals
from web.harness.loop.actions import (
    CallSettled,
    Decided,
    InputGiven,
    Outcome,
    ProposedCall,
    Resolved,
    Resumed,
)
from web.harness.loop.state import CallStatus, Verdict
from web.harness.sessions.journal import CallRecord
from web.harness.tools.permissions import Permissions
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import InputAnswer, ToolContext, ToolOutput
from web.harness.values.config import AgentConfig
from web.harness.values.errors import ToolError
from web.harness.values.events import (
    InputAnswered,
    InputRequired,
    Resolution,
    ToolCallStart,
    ToolResult,
)
from web.harness.values.json_form import NotSerialisable, json_copy
from web.harness.values.messages import JsonObject, TextBlock, ToolResultBlock, ToolUseBlock
from web.harness.values.text import sayable


class Calls:
    """Performs the calls that the loop starts. Its `inbox` holds what the loop must be told."""

    def __init__(
        self,
        *,
        config: AgentConfig,
        tools: ToolRegistry,
        permissions: Permissions,
        context: ToolContext,
        emit: Emit,
        around: Surroundings,
        control: Control,
    ) -> None:
        self.inbox: asyncio.Queue[Outcome | None] = asyncio.Queue()
        self._config = config
        self._tools = tools
        self._permissions = permissions
        self._context = context
        self._emit = emit
        self._around = around
        self._control = control
        self._questions = Questions()
        self._recoveries = Recoveries(emit)
        self._inputs = Inputs(emit, around.answerer)
        self._proposals = Proposals(
            tools=tools,
            permissions=permissions,
            context=context,
            emit=emit,
            around=around,
            questions=self._questions,
            decide=self.decide,
        )
        self._calls: dict[str, Call] = {}

    async def propose(
        self, uses: tuple[ToolUseBlock, ...], message_id: str, tasks: asyncio.TaskGroup
    ) -> tuple[ProposedCall, ...]:
        """Looks each call over, and puts the questions that a person has to answer."""
        self._calls = {use.id: Call(use, message_id) for use in uses}
        look_over, resumes = self._proposals.look_over, self._control.state.resumes
        every = tuple(self._calls.values())
        return tuple(await asyncio.gather(*(look_over(call, resumes, tasks) for call in every)))

    def recall(self, records: dict[str, CallRecord]) -> None:
        """Knows the calls of the newest answer of a run that was written down."""
        self._calls = {call_id: Call.of(record) for call_id, record in records.items()}

    def take_up(self, tasks: asyncio.TaskGroup) -> Resumed:
        """Opens what was open when the process ended, and says what becomes of the calls.

        From then on everything that was asked can be answered.
        """
        state = self._control.state
        found: dict[CallStatus, list[str]] = {"ready": [], "uncertain": [], "waiting": []}
        for known in state.calls:
            call, status = self._calls[known.id], known.status
            if status == "running" and call.result is not None:
                # A person gave it, and the process ended before the loop was told.
                call.ending = ToolResult(known.id, call.use.name, call.result.text, False)
                self._tell_settled(call, call.result)
            elif status == "running":
                status = self._fate(call, known.verdict)
                found[status].append(known.id)
            call.is_unknown = status == "uncertain"
            for key in call.asked:
                self._emit([InputAnswered(key, known.id, "withdrawn")])
            call.asked = ()
            if state.cancelling:
                continue
            if status == "asking":
                self._proposals.ask_again(call, known.key, tasks)
            elif status == "uncertain":
                new = known.status != status
                self._recoveries.open(known.recovery_key, call.use, tell=new)
            elif status == "waiting":
                self._await_input(call, tasks)
        return Resumed(*(tuple(call_ids) for call_ids in found.values()))

    def start(self, call_ids: tuple[str, ...]) -> None:
        """Tells that calls start, and settles those that are refused; see `perform`."""
        for call_id in call_ids:
            call, known = self._calls[call_id], self._control.state.call(call_id)
            if known is not None and known.verdict == "refuse":
                self._settle(call, ToolOutput.of(call.refusal, is_error=True))
                continue
            call.is_unknown = False
            tool = self._tools.get(call.use.name)
            self._emit(
                [
                    ToolCallStart(
                        call_id,
                        call.use.name,
                        deepcopy(call.use.arguments),
                        call.message_id,
                        call.decision,
                        call.edited,
                        tool.hints if tool is not None else (),
                    )
                ]
            )

    def perform(self, call_ids: tuple[str, ...], tasks: asyncio.TaskGroup) -> None:
        """Has the tools run, without waiting for them."""
        for call_id in call_ids:
            call = self._calls[call_id]
            if call.result is None:
                call.started = time.monotonic()
                call.task = tasks.create_task(self._perform(call))

    def is_safe(self, call_id: str) -> bool:
        """Whether it may start before it is known for sure that this is written down."""
        call = self._calls[call_id]
        return call.replay == "safe" or call.result is not None

    def can_rest(self, call_id: str) -> bool:
        """Whether nothing is lost where a running call is left: it waits for a person, who may
        answer in another process."""
        return self._calls[call_id].is_asking

    def decide(self, key: str, answer: Answer) -> None:
        """Answers a question. Raises DecisionRefused where it cannot be answered (so)."""
        check_decision(answer.decision)
        if any(nested.decide(key, answer) for nested in self._nested()):
            return
        question = self._questions.find(key)
        call = self._calls[question.call.id]
        use = call.use
        if answer.decision != "deny" and answer.arguments not in (None, use.arguments):
            use = replace(use, arguments=self._checked(use.name, answer.arguments))
        if answer.decision == "allow_chat":
            self._refuse_once_only(use.name)
            self._permissions.grant(use.name, key)
        self._questions.answer(key, answer)
        call.edited, call.use, call.decision = use is not call.use, use, answer.decision
        if answer.decision == "deny":
            call.refusal = denial(answer.reason)
        self.inbox.put_nowait(Decided(key, answer.decision))

    def answer_input(self, key: str, answer: InputAnswer) -> None:
        """Gives a running tool what it asked for. Raises DecisionRefused where it cannot (so)."""
        if any(nested.answer_input(key, answer) for nested in self._nested()):
            return
        self._inputs.answer(key, answer)

    def resolve(self, key: str, how: Resolution, text: str = "") -> None:
        """Says what is done about a call of which nobody knows if it ran; `text` is its result.

        Raises DecisionRefused where that cannot be said (so).
        """
        call = self._calls[self._recoveries.answer(key, how, text)]
        self.inbox.put_nowait(Resolved(call.use.id, how))
        if how == "result":
            self._settle(call, result_of(text))

    def cancel(self, call_ids: tuple[str, ...]) -> None:
        """Stops calls and gives those that have no result yet one that says so."""
        self.close()
        for call_id in call_ids:
            call = self._calls[call_id]
            if call.result is not None:
                continue
            if call.task is not None:
                call.task.cancel()
            self._settle(call, ToolOutput.of(call.stopped_words, is_error=True), stopped=True)

    def tell(self, outcome: Outcome, *, dropped: bool = False) -> None:
        """Tells what people see of an outcome, right before it is written down: what is shown is
        known after a crash too. `dropped` is one that came too late."""
        match outcome:
            case CallSettled():
                call = self._calls[outcome.call_id]
                if call.ending is not None:
                    self._emit([call.ending])
                    call.ending = None
            case Resolved():
                self._recoveries.tell(outcome.call_id, dropped=dropped)
            case InputGiven():
                self._inputs.tell(outcome.call_id)

    def results(self) -> tuple[ToolResultBlock, ...]:
        """All results in the order of the calls."""
        return tuple(call.result for call in self._calls.values() if call.result is not None)

    def changed(self, outcome: Outcome) -> tuple[CallRecord, ...]:
        """What has to be known of the calls that an outcome is about."""
        match outcome:
            case CallSettled() | Resolved() | InputGiven():
                return (self._calls[outcome.call_id].record,)
            case Decided():
                calls = [each for each in self._control.state.calls if each.key == outcome.key]
                return tuple(self._calls[each.id].record for each in calls)
        return ()

    def records(self) -> tuple[CallRecord, ...]:
        """What has to be known of all calls of the newest answer."""
        return tuple(call.record for call in self._calls.values())

    def wake(self) -> None:
        """Makes whoever waits for the inbox look again."""
        self.inbox.put_nowait(None)

    def close(self) -> None:
        """Ends all questions."""
        self._proposals.close()
        self._recoveries.close()
        self._inputs.close()

    def _fate(self, call: Call, verdict: Verdict) -> CallStatus:
        """What becomes of a call whose process ended while it was running."""
        if call.is_asking:
            return "waiting"
        # A refused call runs nothing, so it is refused again.
        may_repeat = call.replay != "manual" or verdict == "refuse"
        return "ready" if may_repeat and not self._control.state.cancelling else "uncertain"

    def _await_input(self, call: Call, tasks: asyncio.TaskGroup) -> None:
        asked = call.input or {}
        required = InputRequired(asked["key"], call.use.id, asked["request"])
        waited = self._inputs.reopen(required)

        async def go_on() -> None:
            answer = await waited
            if call.result is None:
                call.given(answer)
                self.inbox.put_nowait(InputGiven(call.use.id))

        tasks.create_task(go_on())

    async def _ask(
        self, call: Call, start: int, request: JsonObject, *, state: JsonObject | None = None
    ) -> InputAnswer:
        """Asks a person for the tool; with a state the question is written down, and the answer."""
        if state is None:
            return await self._ask_now(call, start, request)
        kept = json_copy(state, "The state of a question")

        async def keep(required: InputRequired) -> None:
            call.input = {"key": required.key, "request": required.request, "state": kept}
            self._control.note("input_asked", (call.record,))
            await self._control.settled()

        answer = await self._inputs.ask(call.use.id, request, start=start, keep=keep)
        if call.result is None:
            # From here on it is not known what becomes of the answer.
            call.given(answer)
            self._inputs.tell(call.use.id)
            self._control.note("input_answered", (call.record,))
            await self._control.settled()
        return answer

    async def _ask_now(self, call: Call, start: int, request: JsonObject) -> InputAnswer:
        """Asks what ends with the process; it is known then what is open no more."""
        key = ""

        async def keep(required: InputRequired) -> None:
            nonlocal key
            key = required.key
            call.asked = (*call.asked, key)
            self._control.note("input_asked", (call.record,))

        try:
            return await self._inputs.ask(call.use.id, request, start=start, keep=keep)
        finally:
            call.asked = tuple(each for each in call.asked if each != key)
            self._inputs.tell(call.use.id, key)
            if key and call.result is None and not self._control.has_ended:
                self._control.note("input_answered", (call.record,))

    async def _perform(self, call: Call) -> None:
        known = self._control.state.call(call.use.id)
        start = known.starts if known is not None else 1
        call.progress = Progress(call.use.id, lambda report: self._emit([report]))
        call.nested = Nested(
            *(call.use.id, self._around, self._emit, self._is_too_costly, self._stop_nested, start)
        )
        context = replace(
            self._context,
            call_id=call.use.id,
            approval=call.approval,
            decision=call.how_allowed,
            progress=call.progress.report,
            ask=partial(self._ask, call, start),
            inside=call.nested,
            continued=call.continued,
        )
        output = await self._tools.run(
            call.use.name,
            call.use.arguments,
            context,
            default_timeout=self._config.tools.timeout_seconds,
            max_chars=self._config.limits.max_result_chars,
        )
        if call.edited:
            # After what the tool said: the first line of a result is all that many readers see.
            note = TextBlock(edit_note(call.use.arguments))
            output = replace(output, content=(*output.content, note))
        if call.result is None:
            self._settle(call, output)

    def _settle(self, call: Call, output: ToolOutput, *, stopped: bool = False) -> None:
        self._inputs.close_call(call.use.id)
        if call.nested is not None:
            call.nested.close()
        if call.progress is not None:
            call.progress.end()
        content = tuple(
            TextBlock(sayable(block.text)) if isinstance(block, TextBlock) else block
            for block in output.content
        )
        call.result = result = ToolResultBlock(call.use.id, content, output.is_error)
        call.seconds = None if call.started is None else time.monotonic() - call.started
        call.ending = ToolResult(
            *(call.use.id, call.use.name, result.text, output.is_error),
            *(call.seconds, call.decision, stopped),
            *(output.parts, output.files, output.plan),
        )
        self._tell_settled(call, result)

    def _tell_settled(self, call: Call, result: ToolResultBlock) -> None:
        spent = call.nested.spent if call.nested is not None else Totals()
        told = digest(call.use, result)
        self.inbox.put_nowait(CallSettled(call.use.id, result.size, told, spent.usage, spent.cost))

    def _nested(self) -> list[Nested]:
        """Where sub-agents may run."""
        nested = (call.nested for call in self._calls.values() if call.result is None)
        return [each for each in nested if each is not None]

    def _stop_nested(self) -> None:
        for nested in self._nested():
            nested.stop()

    def _is_too_costly(self) -> bool:
        most, cost = self._config.limits.max_cost_dollars, self._around.watch.spent.cost
        return most is not None and cost is not None and cost >= most

    def _refuse_once_only(self, name: str) -> None:
        tool = self._tools.get(name)
        if tool is not None and tool.always_asks:
            raise once_only(name)

    def _checked(self, name: str, arguments: JsonObject | None) -> JsonObject:
        try:
            self._tools.validate(name, arguments)
            if self._control.is_durable:
                json_copy(arguments, "What was edited")
        except (ToolError, NotSerialisable) as error:
            raise unfit(error) from error
        return arguments or {}
