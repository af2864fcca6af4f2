"""The tool calls of one run: proposed, asked about, started, settled, each with one result."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from web.harness.agent.answer import Emit
from web.harness.agent.inputs import Inputs
from web.harness.agent.nested import Nested, Surroundings
from web.harness.agent.progress import Progress
from web.harness.agent.putting import put
from web.harness.agent.questions import Answer, Approver, Questions, as_answer, check_decision
from web.harness.agent.totals import Totals
from web.harness.loop.actions import CallSettled, Decided, Outcome, ProposedCall
from web.harness.loop.state import RunState
from web.harness.tools.permissions import Permissions
from web.harness.tools.previews import bounded, in_short
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import InputAnswer, PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.config import AgentConfig
from web.harness.values.errors import DecisionRefused, ToolError
from web.harness.values.events import ApprovalRequired, Decision, ToolCallStart, ToolResult
from web.harness.values.messages import JsonObject, TextBlock, ToolResultBlock, ToolUseBlock
from web.harness.values.text import sayable

log = logging.getLogger(__name__)

PREVIEW_SECONDS = 5.0
"""A question is put without its preview when that takes longer."""
NOTED_CHARS = 2_000
"""So much of edited arguments is repeated to the model."""


@dataclass(slots=True)
class _Call:
    use: ToolUseBlock
    message_id: str
    refusal: str = ""
    approval: str = ""
    answer: Answer | None = None
    granted: bool = False
    edited: bool = False
    task: asyncio.Task[None] | None = None
    progress: Progress | None = None
    started: float | None = None
    nested: Nested | None = None
    result: ToolResultBlock | None = None


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
    ) -> None:
        self.inbox: asyncio.Queue[Outcome | None] = asyncio.Queue()
        self._config = config
        self._tools = tools
        self._permissions = permissions
        self._context = context
        self._emit = emit
        self._around = around
        self._approver = around.approver
        self._keep_question = around.keep_question
        self._questions = Questions()
        self._inputs = Inputs(emit, around.answerer)
        self._calls: dict[str, _Call] = {}
        self._asking: set[asyncio.Task[None]] = set()

    async def propose(
        self, uses: tuple[ToolUseBlock, ...], message_id: str, tasks: asyncio.TaskGroup
    ) -> tuple[ProposedCall, ...]:
        """Looks each call over, and puts the questions that a person has to answer."""
        self._calls = {use.id: _Call(use, message_id) for use in uses}
        return tuple(await asyncio.gather(*(self._propose(use.id, tasks) for use in uses)))

    def start(self, call_ids: tuple[str, ...], state: RunState, tasks: asyncio.TaskGroup) -> None:
        for call_id in call_ids:
            call, known = self._calls[call_id], state.call(call_id)
            if known is not None and known.verdict == "refuse":
                self._settle(call, ToolOutput.of(call.refusal, is_error=True))
                continue
            call.started = time.monotonic()
            tool = self._tools.get(call.use.name)
            self._emit(
                [
                    ToolCallStart(
                        call_id,
                        call.use.name,
                        deepcopy(call.use.arguments),
                        call.message_id,
                        call.answer.decision if call.answer else None,
                        call.edited,
                        tool.hints if tool is not None else (),
                    )
                ]
            )
            call.task = tasks.create_task(self._perform(call))

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
        call.edited, call.use, call.answer = use is not call.use, use, answer
        if answer.decision == "deny":
            call.refusal = _denial(answer.reason)
        self.inbox.put_nowait(Decided(key, answer.decision))

    def answer_input(self, key: str, answer: InputAnswer) -> None:
        """Gives a running tool what it asked for. Raises DecisionRefused where it cannot (so)."""
        if any(nested.answer_input(key, answer) for nested in self._nested()):
            return
        self._inputs.answer(key, answer)

    def cancel(self, call_ids: tuple[str, ...]) -> None:
        """Stops calls and gives those that have no result yet one that says so."""
        self.close()
        for call_id in call_ids:
            call = self._calls[call_id]
            if call.result is not None:
                continue
            if call.task is not None:
                call.task.cancel()
            words = "Stopped by the person before it ended." if call.task else "Stopped; never ran."
            self._settle(call, ToolOutput.of(words, is_error=True), stopped=True)

    def results(self) -> tuple[ToolResultBlock, ...]:
        """All results in the order of the calls."""
        return tuple(call.result for call in self._calls.values() if call.result is not None)

    def wake(self) -> None:
        """Makes whoever waits for the inbox look again."""
        self.inbox.put_nowait(None)

    def close(self) -> None:
        """Ends all questions."""
        self._questions.close()
        self._inputs.close()
        for task in self._asking:
            task.cancel()

    async def _propose(self, call_id: str, tasks: asyncio.TaskGroup) -> ProposedCall:
        call = self._calls[call_id]
        use = call.use
        refused = ProposedCall(use.id, use.name, "refuse")
        if use.malformed is not None:
            call.refusal = f"The arguments are not a JSON object: {use.malformed[:200]!r}"
            return refused
        try:
            arguments = self._tools.validate(use.name, use.arguments)
            tool = self._tools.get(use.name)
            if tool is None:
                raise ToolError(f"There is no tool {use.name}.")
            level = self._permissions.level(tool)
            if level is PermissionLevel.DENY:
                call.refusal = f"The tool {use.name} is not allowed here."
                return refused
            if level is PermissionLevel.ALLOW:
                granted = self._permissions.granted_by(tool)
                call.granted, call.approval = granted is not None, granted or ""
                return ProposedCall(use.id, use.name)
            whole = await self._preview(tool, arguments, call)
            short = await _in_short(whole)
        except ToolError as error:
            call.refusal = error.message
            return refused
        key = call.approval = self._questions.ask(use).key
        question = ApprovalRequired(
            *(key, use.id, use.name, deepcopy(use.arguments), call.message_id),
            *(whole, tool.hints, tool.always_asks),
        )
        if self._keep_question is not None:
            self._keep_question(question)
        self._emit([replace(question, preview=short)])
        if self._approver is not None:
            self._asking.add(tasks.create_task(self._ask(self._approver, question)))
        return ProposedCall(use.id, use.name, "run", key)

    async def _ask(self, approver: Approver, question: ApprovalRequired) -> None:
        try:
            self.decide(question.key, as_answer(await put(approver, question)))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            log.exception("The approver of %s gave no answer", question.name)
            # It may be answered by now, by somebody who calls `decide`.
            with suppress(DecisionRefused):
                self.decide(question.key, Answer("deny"))
                self._calls[question.call_id].refusal = _unanswered(error)

    async def _preview(self, tool: Tool, arguments: JsonObject, call: _Call) -> JsonObject | None:
        """What the call would do; raises ToolError where it can be seen to fail."""
        if tool.preview is None:
            return None
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                preview = await tool.preview(arguments, self._context_of(call))
                return bounded(preview) if preview is not None else None
        except (ToolError, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException:
            log.exception("The preview of the tool %s failed", tool.name)
            return None

    async def _perform(self, call: _Call) -> None:
        call.progress = Progress(call.use.id, lambda report: self._emit([report]))
        call.nested = Nested(
            call.use.id, self._around, self._emit, self._is_too_costly, self._stop_nested
        )
        context = replace(
            self._context_of(call),
            approval=call.approval,
            decision=_decision(call),
            progress=call.progress.report,
            ask=partial(self._inputs.ask, call.use.id),
            inside=call.nested,
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
            note = TextBlock(_edit(call.use.arguments))
            output = replace(output, content=(*output.content, note))
        if call.result is None:
            self._settle(call, output)

    def _settle(self, call: _Call, output: ToolOutput, *, stopped: bool = False) -> None:
        self._inputs.close_call(call.use.id)
        if call.nested is not None:
            call.nested.close()
        if call.progress is not None:
            call.progress.end()
        content = tuple(
            TextBlock(sayable(block.text)) if isinstance(block, TextBlock) else block
            for block in output.content
        )
        call.result = ToolResultBlock(call.use.id, content, output.is_error)
        seconds = None if call.started is None else time.monotonic() - call.started
        decision = call.answer.decision if call.answer else None
        self._emit(
            [
                ToolResult(
                    call.use.id,
                    call.use.name,
                    call.result.text,
                    output.is_error,
                    seconds,
                    decision,
                    stopped,
                    output.parts,
                    output.files,
                    output.plan,
                )
            ]
        )
        spent = call.nested.spent if call.nested is not None else Totals()
        settled = CallSettled(
            call.use.id, call.result.size, _digest(call.use, call.result), spent.usage, spent.cost
        )
        self.inbox.put_nowait(settled)

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
            raise DecisionRefused(
                f"{name} asks before each call; it cannot be allowed for the whole chat.",
                hint="The question is still open. Allow this call alone, or deny it.",
            )

    def _checked(self, name: str, arguments: JsonObject | None) -> JsonObject:
        try:
            self._tools.validate(name, arguments)
        except ToolError as error:
            raise DecisionRefused(
                f"The edited arguments do not fit: {error.message}",
                hint="The question is still open.",
                code="invalid_arguments",
            ) from error
        return arguments or {}

    def _context_of(self, call: _Call) -> ToolContext:
        return replace(self._context, call_id=call.use.id)


def _decision(call: _Call) -> Decision | Literal[""]:
    """What a person said that let the call run, '' where nobody was asked."""
    if call.answer is not None:
        return call.answer.decision
    return "allow_chat" if call.granted else ""


async def _in_short(whole: JsonObject | None) -> JsonObject | None:
    if whole is None:
        return None
    return await run_in_thread(lambda: in_short(whole), finish=True)


def _digest(use: ToolUseBlock, result: ToolResultBlock) -> str:
    """The same for the same call with the same arguments and the same result."""
    told = [use.name, use.arguments, use.malformed, result.is_error]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for block in result.content:
        digest.update(b"\0")
        text = block.text if isinstance(block, TextBlock) else block.sha256
        digest.update(text.encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]


def _edit(arguments: JsonObject) -> str:
    """Tells the model which arguments a person put in place of its own."""
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > NOTED_CHARS:
        text = f"{text[:NOTED_CHARS]}… ({len(text) - NOTED_CHARS:,} more characters)"
    return f"The person changed the arguments before it ran, to: {text}"


def _unanswered(error: BaseException) -> str:
    """Why a call did not run whose approver failed; a program's own errors are for its log."""
    why = error.message if isinstance(error, DecisionRefused) else "the approver failed."
    return f"This call was not allowed, so it did not run: {why}"


def _denial(reason: str) -> str:
    return f"The person refused this call: {reason}" if reason else "The person refused this call."
